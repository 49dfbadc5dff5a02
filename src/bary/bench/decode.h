// SPDX-License-Identifier: Apache-2.0
// Writing token by token with a cache: a token at a time through the whole model, and a draw.
#pragma once
#include <cstdint>
#include <vector>

#include "bary/model/language_model.h"

namespace bary {

struct DecodeFigures {
  std::vector<double> seconds_a_token;  // of each run's tokens
  int64_t weight_bytes = 0;             // read for every token: all parameters but the tables looked up in
};
// `runs` times `tokens` tokens drawn at temperature 1 after a prompt of one. The context must hold them.
DecodeFigures measure_decode(LanguageModel& model, int64_t tokens, int64_t runs);

}  // namespace bary
