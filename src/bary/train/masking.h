// SPDX-License-Identifier: Apache-2.0
// Masked language models (Devlin et al. 2019, section 3.1): some tokens of a window are asked for, most of them hidden.
#pragma once
#include <span>

#include "bary/train/evaluate.h"

namespace bary {

struct MaskName {
  uint64_t seed, step, sequence;
};
// Turns a window into an exercise: 15 of every hundred positions, one at least, keep their token in `targets` and the
// others -1 there. In `inputs`, 80 of every hundred asked for become `mask`, 10 any token of the vocabulary, 10 stay.
void hide_tokens(int32_t mask, int64_t vocab_size, const MaskName& name, std::span<int32_t> inputs,
                 std::span<int32_t> targets);

// The loss and accuracy at 15 of every hundred positions, all of them hidden as `mask`: of `count` fixed windows, or of
// all that follow each other (0).
Evaluation evaluate_masked(const LanguageModel& model, TokenSpan tokens, int32_t mask, int64_t count, uint64_t seed);

}  // namespace bary
