// SPDX-License-Identifier: Apache-2.0
// What a model says of targets, from its logits.
#pragma once
#include "bary/train/evaluate.h"

namespace bary {

// Loss, counted targets, those that are the most likely token (the first of equal ones), and the sequences of (B,T,V)
// logits all of whose counted targets are. The logits are used up. Throws on a target beyond the vocabulary.
Evaluation judged(const Tensor& logits, std::span<const int32_t> targets);
void add(const Evaluation& part, Evaluation& total);

}  // namespace bary
