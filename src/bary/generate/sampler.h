// SPDX-License-Identifier: Apache-2.0
// From logits to a token. In this order: repetition penalty (Keskar et al. 2019), temperature, top-k (Fan et al. 2018),
// top-p (Holtzman et al. 2020), min-p (Nguyen et al. 2024), one draw. Probabilities come from the kernels' softmax,
// sums run in double in the order of ids, ties go to the lowest id: so the same seed gives the same text everywhere.
#pragma once
#include <cstdint>
#include <span>

#include "bary/base/random.h"

namespace bary {

struct SamplerOptions {
  double temperature = 1;  // 0: the most likely token, ties to the lowest id
  int64_t top_k = 0;       // 0: off; more than the vocabulary: all
  double top_p = 1;        // keep the most likely tokens until their sum reaches p, the crossing one included; 0: one
  double min_p = 0;        // drop tokens below min_p times the most likely one
  double repetition_penalty = 1;  // logits of tokens already there: divided if positive, multiplied if negative
};
void check_sampler(const SamplerOptions& o);  // refuses what makes no sense, naming the option

// `logits` of ids 0 .. n-1; ids from `allowed` on (padding of the vocabulary) have probability 0. `history`: prompt and
// what was generated. A logit that is NaN is a numeric Error.
int32_t sample_token(std::span<const float> logits, int64_t allowed, std::span<const int32_t> history,
                     const SamplerOptions& o, RandomStream& random);

}  // namespace bary
