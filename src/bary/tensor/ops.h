// SPDX-License-Identifier: Apache-2.0
// Plain operations: each is its own definition, has a gradient, and is what the fused operations of fused.h and
// attention.h are checked against. Names and meanings are PyTorch's.
#pragma once
#include <span>
#include <vector>

#include "bary/kernel/dropout.h"
#include "bary/kernel/gemm.h"
#include "bary/tensor/tensor.h"

namespace bary {

using kernel::Activation;

Tensor operator+(const Tensor& a, const Tensor& b);  // same shape
Tensor operator*(const Tensor& a, const Tensor& b);  // element by element
Tensor operator*(const Tensor& a, float k);
Tensor sum(const Tensor& x);  // (1), summed row by row in double
Tensor activation(const Tensor& x, Activation act);

Tensor matmul(const Tensor& a, const Tensor& b);     // (B,T,S) (B,S,D) -> (B,T,D)
Tensor matmul_nt(const Tensor& a, const Tensor& b);  // (B,T,D) (B,S,D) -> (B,T,S): a b^T

// Which keys a query may see: causal j <= t, window the same and j > t - window (at least 1), full everything.
enum class Mask { causal, full, window };
Tensor masked(const Tensor& scores, Mask mask, int64_t window = 0);  // (B,T,S), -inf where the mask forbids
Tensor masked_from(const Tensor& scores, std::vector<int64_t> end);  // -inf at and past end[r] of row r
Tensor softmax(const Tensor& x);                                     // over the last dimension

Tensor columns(const Tensor& x, int64_t first, int64_t count);  // x[..., first : first + count]
Tensor concat(std::span<const Tensor> parts);                   // along the last dimension
Tensor split_heads(const Tensor& x, int64_t heads);             // (B,T,H D) -> (B H,T,D)
Tensor merge_heads(const Tensor& x, int64_t heads);             // (B H,T,D) -> (B,T,H D)

// -log softmax(logits)[target], summed over rows; a target of -1 counts nothing
Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> targets);
Tensor linear_by_definition(const Tensor& x, const Tensor& w,
                            const Tensor& bias);  // x w^T + bias, w (N,K) as in PyTorch
Tensor layer_norm_by_definition(const Tensor& x, const Tensor& w, const Tensor& b, float eps);

// Zero with probability p, the rest divided by 1-p. x is (B,T,C); row (b,t) is named by (sequence + b, first + t).
struct DropoutRows {
  uint64_t sequence = 0;
  int64_t first = 0;
};
Tensor dropout(const Tensor& x, const kernel::DropoutSite& site, DropoutRows rows);

}  // namespace bary
