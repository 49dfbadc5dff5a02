// SPDX-License-Identifier: Apache-2.0
// One recurrent stack with its tokens: a language model without its head, or one side of a model of pairs.
//   x = E[id];  dropout;  s_t = cell(x_t, s_{t-1}) layer by layer                                    (B,T) -> (B,T,C)
#pragma once
#include <span>
#include <string>

#include "bary/model/config.h"
#include "bary/nn/recurrent.h"

namespace bary {

struct RecurrentSide {
  // `tokens`: another side's table, if they share one.
  RecurrentSide(const Scope& s, const ModelConfig& c, int64_t vocab_size, int64_t n_layer, int64_t first_layer,
                const Tensor& tokens = {});
  // Goes on from pass.cache where it holds a state, else from `first`.
  RecurrentStackOutput operator()(std::span<const int32_t> ids, int64_t B, const RecurrentStates& first,
                                  const Pass& pass) const;

  Embedding wte;
  RecurrentStack stack;
  double dropout;
  std::string hook;
};

Cell cell_of(const ModelConfig& c);

}  // namespace bary
