// SPDX-License-Identifier: Apache-2.0
// The optimiser's two passes over flat buffers, on fixed chunks so that any number of threads gives the same bits.
#pragma once
#include <cstdint>
#include <span>

namespace bary::kernel {

constexpr int64_t kOptimizerChunk = 4096;  // floats: the unit in which the norm is summed

// sum += parts[0] + parts[1] + ... , one after the other in this order, over n floats
void add_in_order(std::span<const float* const> parts, int64_t n, float* sum);

// sum of squares of at most a chunk of floats, on 16 lanes
double squared_norm(const float* x, int64_t n);

struct AdamW {               // Loshchilov and Hutter 2019, in PyTorch's order of operations
  float gradient_scale = 1;  // 1 / tokens, times the clipping factor
  float learning_rate = 0, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f;
  float rest1 = 0.1f, rest2 = 0.001f;  // 1 - beta from double: 1 - 0.999f in float would be off by 1.3e-5 of itself
  float decay = 0;                     // p *= 1 - learning_rate * decay first
  float correction1 = 1;               // 1 - beta1^t
  float sqrt_correction2 = 1;          // sqrt(1 - beta2^t)
};
// m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  p -= lr / c1 * m / (sqrt(v) / sqrt(c2) + eps)
void adamw(const AdamW& o, int64_t n, const float* gradient, float* p, float* m, float* v);

}  // namespace bary::kernel
