// SPDX-License-Identifier: Apache-2.0
// The measurements of "embedding" that are not of the text: look-up, names, angles, and `bank`.
#pragma once
#include "bary/lab/experiment.h"

namespace bary::lab {

inline constexpr const char* kSenses[] = {"river", "stream", "lake", "shore", "money", "loan", "gold", "cash"};

nlohmann::json one_hot_look_up(const Work& work);  // one-hot x table against the look-up
nlohmann::json renumbered(const Work& work);       // another numbering of the tokens, the same model
nlohmann::json angles(const Work& work);           // a . b against |a| |b| cos(angle)
nlohmann::json bank(const Work& work);             // one row of the table, two points after attention

}  // namespace bary::lab
