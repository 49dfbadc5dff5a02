// SPDX-License-Identifier: Apache-2.0
// Layers of RNN, LSTM and GRU cells, with PyTorch's names of parameters and first values: uniform in +-1/sqrt(H).
#pragma once
#include <string>
#include <vector>

#include "bary/nn/pass.h"
#include "bary/nn/scope.h"
#include "bary/tensor/recurrent.h"

namespace bary {

// (B,T,C) -> (B,T,H). Parameters: weight_ih, weight_hh, bias_ih, bias_hh, each followed by `suffix` ("_l0").
struct RecurrentLayer {
  RecurrentLayer(const Scope& s, Cell cell, int64_t channels, int64_t hidden, const std::string& suffix = "");
  RecurrentOutput operator()(const Tensor& x, const RecurrentState& first = {}, RecurrentOptions o = {}) const;

  Cell cell;  // in place of the options'
  RecurrentWeights weights;
};

struct RecurrentStackConfig {
  Cell cell = Cell::lstm;
  int64_t channels = 128, hidden = 128, n_layer = 1;
  double dropout = 0;       // between layers only: of every layer's output but the last one's, as in PyTorch
  int64_t first_layer = 0;  // of dropout's names, where a model has more than one stack
};

struct RecurrentStackOutput {
  Tensor y;  // (B,T,H) of the last layer
  RecurrentStates last;
};

// Layers on top of each other, named as nn.LSTM's: weight_ih_l0, ..., weight_ih_l1, ...
struct RecurrentStack {
  RecurrentStack(const Scope& s, const RecurrentStackConfig& c);
  // Of the options lengths and truncate are used.
  RecurrentStackOutput operator()(const Tensor& x, const RecurrentStates& first, const Pass& pass,
                                  const RecurrentOptions& o = {}) const;

  RecurrentStackConfig config;
  std::vector<RecurrentLayer> layers;
};

}  // namespace bary
