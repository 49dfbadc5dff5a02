// SPDX-License-Identifier: Apache-2.0
// The small modules: plain structs that own their parameters and are called like functions.
#pragma once
#include <cmath>

#include "bary/nn/scope.h"
#include "bary/tensor/fused.h"

namespace bary {

// y = x W^T + b, W (out, in)
struct Linear {
  Linear() = default;
  Linear(const Scope& s, int64_t in, int64_t out, bool with_bias = true, bool onto_residual = false);
  Tensor operator()(const Tensor& x, const Tensor& onto = {}) const { return linear(x, weight, bias, onto); }
  Tensor weight, bias;
};

struct Embedding {
  Embedding() = default;
  Embedding(const Scope& s, int64_t rows, int64_t channels);
  Tensor weight;
};

enum class NormKind { layer, rms };

// y = (x - mean) / sqrt(var + eps) w + b  or  y = x / sqrt(mean(x^2) + eps) w
struct Norm {
  Norm() = default;
  Norm(const Scope& s, int64_t channels, NormKind kind, bool with_bias, double eps);
  Tensor operator()(const Tensor& x) const {
    return kind == NormKind::layer ? layer_norm(x, weight, bias, eps) : rms_norm(x, weight, eps);
  }
  NormKind kind = NormKind::layer;
  float eps = 1e-5f;
  Tensor weight, bias;
};

// One head as the chapter writes it: softmax(q k^T / sqrt(D) + M) v with M = 0 on and below the diagonal, -inf above.
// (B,T,C) -> (B,T,D). Attention (nn/attention.h) is the same function for all heads at once, fused.
struct Head {
  Head(const Scope& s, int64_t d_model, int64_t d_head)
      : query(s / "query", d_model, d_head, false),
        key(s / "key", d_model, d_head, false),
        value(s / "value", d_model, d_head, false) {}
  Tensor operator()(const Tensor& x) const {
    Tensor q = query(x), k = key(x), v = value(x);
    Tensor scores = matmul_nt(q, k) * (1 / std::sqrt(static_cast<float>(q.channels())));
    return matmul(softmax(masked(scores, Mask::causal)), v);
  }
  Linear query, key, value;
};

}  // namespace bary
