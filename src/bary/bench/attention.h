// SPDX-License-Identifier: Apache-2.0
// Attention alone, forward and backward, from queries, keys and values of one sequence to their gradients: tiled, as
// models run it, or by its definition, which stores the T x T matrix of every head.
#pragma once
#include <cstdint>

#include "bary/tensor/attention.h"

namespace bary {

enum class AttentionPath { tiled, stored };

class AttentionBench {
 public:
  AttentionBench(int64_t heads, int64_t width, int64_t T, AttentionPath path, uint64_t seed = 1);
  double run_one();      // seconds
  double flops() const;  // of the visible half: two products forward, five backward, 2 H D per pair and product
  // The most memory the process has held since the start, less what it held then and less queries, keys, values, output
  // and their gradients.
  int64_t extra_bytes() const;

 private:
  AttentionOptions options_;
  AttentionPath path_;
  int64_t T_, width_, before_;
  Tensor qkv_, upstream_;
};

}  // namespace bary
