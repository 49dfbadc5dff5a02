// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows of n channels. Sums run on 16 virtual lanes and one tree; 1/sqrt is a square root and a
// division.
//   LayerNorm (Ba et al. 2016): y = (x - mean) rstd w + b,  rstd = 1 / sqrt(var + eps), var over n (not n-1)
//   RMSNorm (Zhang and Sennrich 2019): y = x rstd w,  rstd = 1 / sqrt(mean(x^2) + eps)
#pragma once
#include <cstdint>

namespace bary::kernel {

struct NormRows {
  int64_t rows = 0, n = 0;
  const float* x = nullptr;
  int64_t ldx = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;  // may be null (LayerNorm without bias); unused by RMSNorm
  float* mean = nullptr;        // (rows), LayerNorm only
  float* rstd = nullptr;        // (rows)
  float eps = 1e-5f;
};
void layer_norm(const NormRows& r, float* y, int64_t ldy);
void rms_norm(const NormRows& r, float* y, int64_t ldy);

struct NormGradient {
  float* dx = nullptr;
  int64_t ldx = 0;
  bool accumulate = false;   // add to dx instead of writing it
  float* dweight = nullptr;  // (n) added to, in row order; null: not wanted
  float* dbias = nullptr;
};
void layer_norm_backward(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g);
void rms_norm_backward(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g);

}  // namespace bary::kernel
