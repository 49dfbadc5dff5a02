// SPDX-License-Identifier: Apache-2.0
// The two halves of the induction experiment: what is trained and watched, and what is said of it.
#pragma once
#include "bary/lab/experiment.h"
#include "bary/lab/training.h"

namespace bary::lab {

inline constexpr const char *kTwoLayers = "two layers", *kOneLayer = "one layer", *kText = "text", *kMap = "map";

Recipe repeat_recipe(int64_t layers, uint64_t seed, const Plan& plan);
Recipe text_recipe(const Plan& plan);

std::vector<Claim> induction_claims();
Findings judge_induction(const Rows& rows, const Plan& plan);

}  // namespace bary::lab
