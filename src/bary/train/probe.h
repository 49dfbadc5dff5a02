// SPDX-License-Identifier: Apache-2.0
// The causality probe: in a causal model changing the tokens from t on must not move any output before t, not by a bit.
// Run before each evaluation, because a model that sees the answer has a splendid loss.
#pragma once
#include <cstdint>
#include <vector>

#include "bary/model/language_model.h"

namespace bary {

struct CausalityReport {
  bool causal = true;
  int64_t changed = 0;  // the first token that was changed; all from it on were
  int64_t moved = 0;    // the first output before it that moved
};
// Changes all that follows after 1, 3, 7, 15, 31, ... tokens of a random text of the model's block_size, but of at most
// 256 tokens.
CausalityReport probe_causality(const LanguageModel& model, uint64_t seed);

}  // namespace bary
