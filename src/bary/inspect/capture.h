// SPDX-License-Identifier: Apache-2.0
// Attention patterns of a model on given tokens: seen, or with heads switched off.
#pragma once
#include <span>
#include <vector>

#include "bary/model/language_model.h"
#include "bary/tensor/tap.h"

namespace bary {

// A[l] (B,H,T,T): the weights of layer l, every row a query; rows sum to 1, what the mask hides is exactly 0. B
// sequences of one length stand side by side in `ids`. Input Error for a model whose mixer is not attention.
std::vector<Tensor> attention_patterns(const LanguageModel& model, std::span<const int32_t> ids, int64_t B = 1);

// From now on, while `probe` lives, these heads of `layer` move nothing: their pattern is replaced by zeros, so
// z = A v = 0, while the other heads and the output matrix's bias stay ("zero ablation, full": later layers compute
// their own patterns from what is left). One call a layer: a second one replaces the first. No heads: nothing changes.
// The patterns are of whole texts, so generation then runs without its cache; with one it is refused.
void switch_off(Probe& probe, const LanguageModel& model, int64_t layer, std::span<const int64_t> heads);

}  // namespace bary
