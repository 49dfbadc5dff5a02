// SPDX-License-Identifier: Apache-2.0
// The measurements of "mixing" that need no training: who depends on whom, and what order does.
#pragma once
#include "bary/lab/experiment.h"

namespace bary::lab {

// Rows and columns of a Jacobian's pattern.
inline constexpr int64_t kPatternLength = 12;
// Parts whose pattern is taken, in this order.
inline constexpr const char* kPatternParts[] = {"embedding", "LayerNorm", "attention", "MLP", "block", "head"};

nlohmann::json jacobian_patterns(const Work& work);   // of every part: its map, and where it is not zero
nlohmann::json other_tokens(const Work& work);        // rows of logits that change when one other token does
nlohmann::json moved_not_reshaped(const Work& work);  // is a part linear once the pattern is held?
nlohmann::json layer_norm_company(const Work& work);  // LayerNorm and batch statistics in training, inference, any T
nlohmann::json equivariance(const Work& work);        // Attention(P X) against P Attention(X)
nlohmann::json bag_of_words(const Work& work);        // the last logits when the prefix is permuted

}  // namespace bary::lab
