// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a model: parameters, floating-point operations, memory; from the configuration alone.
#pragma once
#include <string>
#include <vector>

#include "bary/model/config.h"

namespace bary {

struct CountRow {
  std::string part;  // "token embedding", "attention", ...
  // In the letters of `bary params`: C width, V vocabulary, S the source's, P positions, F width of the MLP, H heads of
  // D, G of them with keys and values. "V C", "3 C^2", "2 C F + F + C"; it gives `count`.
  std::string formula;
  int64_t count = 0;  // numbers, in one block of a group
  std::string group;  // "blocks", "encoder blocks", "layers": a part of each of these; empty: stands alone
  int64_t times = 1;  // how many there are of the group
};

struct ParameterCount {
  std::vector<CountRow> rows;
  int64_t block = 0;       // one block; of the target's side
  int64_t total = 0;       // everything learned; a tied table counted once
  int64_t embeddings = 0;  // token and position tables
};
ParameterCount count_parameters(const ModelConfig& c);

// Multiply-adds count as two operations. Causal attention is counted at the keys that are really visited.
struct FlopCount {
  double forward = 0;   // per sequence of T tokens
  double training = 0;  // forward + backward
};
FlopCount count_flops(const ModelConfig& c, int64_t T);  // with a source of T tokens too, where there is one

struct MemoryForecast {  // bytes of a training run, depth first: one sequence of activations a thread
  double weights = 0, packed = 0, optimizer = 0, gradients = 0, activations = 0;
  double total() const { return weights + packed + optimizer + gradients + activations; }
};
// `sequences`: whose activations are in memory at once; `buffers`: of gradients beside their sum.
MemoryForecast forecast_memory(const ModelConfig& c, int64_t sequences, int64_t buffers);

}  // namespace bary
