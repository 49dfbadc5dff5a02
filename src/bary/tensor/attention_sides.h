// SPDX-License-Identifier: Apache-2.0
// Inside tensor/: where queries, keys and values of one call of attention lie, whether they came side by side from one
// text or from two.
#pragma once
#include "bary/kernel/attention.h"
#include "bary/tensor/attention.h"

namespace bary {

struct AttentionSides {
  int64_t B = 0, T = 0, S = 0, H = 1, G = 1, D = 0;  // S keys (without a cache's), G key heads
  Tensor q, kv;                                      // the same tensor for self-attention
  int64_t k_column = 0, v_column = 0;                // of kv
  bool cross = false;
  std::vector<int64_t> lengths;  // keys of every sequence; empty: S

  int64_t group() const { return H / G; }  // heads that one key head serves
  const float* queries(int64_t b, int64_t h) const { return q.row(b * T) + h * D; }
  const float* k(int64_t b, int64_t g) const { return kv.row(b * S) + k_column + g * D; }
  const float* v(int64_t b, int64_t g) const { return kv.row(b * S) + v_column + g * D; }
  // One head of one sequence, whose query 0 stands at position `first`
  kernel::AttentionHead head(const AttentionOptions& o, int64_t b, int64_t h, int64_t first) const;
  float scale(const AttentionOptions& o) const;
};

// Each checks what came and throws an Error that names it.
AttentionSides self_sides(const char* op, const Tensor& qkv, const AttentionOptions& o);
AttentionSides cross_sides(const char* op, const Tensor& q, const Tensor& kv, const AttentionOptions& o);
AttentionSides memory_sides(const char* op, const Tensor& q, const KeyValues& memory, const std::vector<int64_t>& of,
                            const AttentionOptions& o);

}  // namespace bary
