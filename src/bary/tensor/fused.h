// SPDX-License-Identifier: Apache-2.0
// Operations of a transformer's size, each one kernel call forward and one pullback. What each computes is written in
// its formula; the same from plain operations stands in fused_test.cc as its oracle.
#pragma once
#include <span>

#include "bary/tensor/ops.h"
#include "bary/tensor/parameters.h"

namespace bary {

// y = x w^T + bias + onto. x (..., K), w (N, K) as in PyTorch; bias (N) and onto (..., N) may be undefined. `onto` is
// the residual: the sum x + f(x) happens while the product is still in registers.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Tensor& onto = {});

// y = act(x up^T + up_bias) down^T + down_bias + onto; the hidden activation and its derivative are kept for backward.
struct MlpWeights {
  Tensor up, up_bias, down, down_bias;  // (4C, C), (4C), (C, 4C), (C)
};
Tensor mlp(const Tensor& x, const MlpWeights& w, Activation act, const Tensor& onto = {});

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, float eps = 1e-5f);  // b may be undefined
Tensor rms_norm(const Tensor& x, const Tensor& w, float eps = 1e-5f);

// y[b,t] = scale tokens[ids[b,t]] + positions[first + t]; positions may be undefined. ids out of range are an Error.
struct EmbeddingOptions {
  Tensor positions = {};
  int64_t first = 0;
  float scale = 1;
};
Tensor embedding(std::span<const int32_t> ids, int64_t B, const Tensor& tokens, const EmbeddingOptions& o = {});

// y_t = mean of x_0 .. x_t over each sequence of (B,T,C): one product with the row-normalised lower triangle.
// With `running` (B,C) the sums continue from `first` earlier positions (generation).
Tensor prefix_mean(const Tensor& x, Tensor running = {}, int64_t first = 0);

// The last step of training: weight * sum over rows of -log softmax(x w^T + bias)[target], in chunks of rows, so that
// the (rows, V) logits never exist at once. Its gradients are made in the same pass: only a seed of 1 is accepted.
struct LossOptions {
  LossOptions(float weight_ = 1, float smoothing_ = 0)
      : weight(weight_), smoothing(smoothing_) {}  // a plain weight too
  float weight, smoothing;  // smoothing: the share of the target's probability spread over the vocabulary, in [0,1)
};
struct LossSum {
  Tensor loss;                    // (1), float
  double sum = 0;                 // unweighted: the sum over sequences of
  std::vector<double> sequences;  // each one's, in row order
  int64_t count = 0;              // targets that were counted (not -1)
};
LossSum linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& bias, std::span<const int32_t> targets,
                             const LossOptions& options = {});

}  // namespace bary
