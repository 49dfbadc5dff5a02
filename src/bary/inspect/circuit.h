// SPDX-License-Identifier: Apache-2.0
// The two circuits of a head, computed from its weights (Elhage et al. 2021, "A mathematical framework for transformer
// circuits"): where it looks (queries and keys), and what it writes when it looks there (values, W_O, unembedding).
#pragma once
#include <span>

#include "bary/model/language_model.h"

namespace bary {

// What enters the softmax of a layer, before the mask: q k^T / sqrt(D) (B,H,T,T), every pair of positions alike. Input
// Error for a model without attention, and for rotary positions or ALiBi, whose scores are not a product of two
// projections.
Tensor attention_scores(const LanguageModel& model, int64_t layer, std::span<const int32_t> ids, int64_t B = 1);

// Copying, one figure a head of `layer`: if the head looked at position j alone, what would it write, and would that
// raise the logit of the token that stands there? o_j = v_j W_O[h] (no bias), through the final norm's gain and the
// unembedding; a_j = its logits less their mean over the vocabulary; share of the rise = relu(a_j[t_j]) / sum_v
// relu(a_j[v]), averaged over all positions. 1: raises that token only; 1/V: favours none. The norm's division by its
// scale cancels in the share; MLPs and later layers are not followed. After Olsson et al. 2022, whose figure is
// 2 share - 1 of what the head wrote with its own pattern.
std::vector<double> copying_scores(const LanguageModel& model, int64_t layer, std::span<const int32_t> ids,
                                   int64_t B = 1);

}  // namespace bary
