// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/norm.h"

#include <cmath>

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/norm.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// the centred row; lanes past n stay zero so that they add nothing to a sum
HWY_INLINE V16 centred(const float* x, int64_t j, int64_t n, V16 mean) {
  return first_n(load_n(x + j, n - j) - mean, n - j, zero());
}

template <bool kLayer>
HWY_INLINE void forward_rows(const NormRows& r, float* y, int64_t ldy) {
  const float inverse_n = 1.0f / static_cast<float>(r.n);
  for (int64_t i = 0; i < r.rows; ++i) {
    const float* x = r.x + i * r.ldx;
    float mean = 0;
    if (kLayer) {
      V16 s = zero();
      for (int64_t j = 0; j < r.n; j += 16) s = s + load_n(x + j, r.n - j);
      mean = sum_lanes(s) * inverse_n;
      r.mean[i] = mean;
    }
    V16 m = set1(mean), q = zero();
    for (int64_t j = 0; j < r.n; j += 16) {
      V16 d = kLayer ? centred(x, j, r.n, m) : load_n(x + j, r.n - j);
      q = fma(d, d, q);
    }
    float rstd = 1.0f / std::sqrt(sum_lanes(q) * inverse_n + r.eps);
    r.rstd[i] = rstd;
    V16 s = set1(rstd);
    for (int64_t j = 0; j < r.n; j += 16) {
      V16 h = (load_n(x + j, r.n - j) - m) * s;
      V16 w = load_n(r.weight + j, r.n - j);
      V16 out = kLayer && r.bias ? fma(h, w, load_n(r.bias + j, r.n - j)) : h * w;
      store_n(out, y + i * ldy + j, r.n - j);
    }
  }
}

// With h the normalised row and u = dy w: dx = rstd (u - [mean(u)] - h mean(u h)), the bracket for LayerNorm only
template <bool kLayer>
HWY_INLINE void backward_rows(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g) {
  const float inverse_n = 1.0f / static_cast<float>(r.n);
  for (int64_t i = 0; i < r.rows; ++i) {
    const float *x = r.x + i * r.ldx, *d = dy + i * ldy;
    V16 m = set1(kLayer ? r.mean[i] : 0.0f), s = set1(r.rstd[i]), a = zero(), c = zero();
    for (int64_t j = 0; j < r.n; j += 16) {
      int64_t left = r.n - j;
      V16 gy = load_n(d + j, left), h = (load_n(x + j, left) - m) * s, u = gy * load_n(r.weight + j, left);
      a = a + u;
      c = fma(u, h, c);  // u is zero past n
      if (g.dweight) store_n(fma(gy, h, load_n(g.dweight + j, left)), g.dweight + j, left);
      if (g.dbias) store_n(gy + load_n(g.dbias + j, left), g.dbias + j, left);
    }
    V16 mean_u = set1(kLayer ? sum_lanes(a) * inverse_n : 0.0f), mean_uh = set1(sum_lanes(c) * inverse_n);
    for (int64_t j = 0; j < r.n; j += 16) {
      int64_t left = r.n - j;
      V16 h = (load_n(x + j, left) - m) * s, u = load_n(d + j, left) * load_n(r.weight + j, left);
      V16 out = s * fnma(h, mean_uh, u - mean_u);
      float* to = g.dx + i * g.ldx + j;
      store_n(g.accumulate ? out + load_n(to, left) : out, to, left);
    }
  }
}

void LayerNormRows(const NormRows& r, float* y, int64_t ldy) { forward_rows<true>(r, y, ldy); }
void RmsNormRows(const NormRows& r, float* y, int64_t ldy) { forward_rows<false>(r, y, ldy); }
void LayerNormBack(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g) {
  backward_rows<true>(r, dy, ldy, g);
}
void RmsNormBack(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g) {
  backward_rows<false>(r, dy, ldy, g);
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(LayerNormRows);
HWY_EXPORT(RmsNormRows);
HWY_EXPORT(LayerNormBack);
HWY_EXPORT(RmsNormBack);

void layer_norm(const NormRows& r, float* y, int64_t ldy) { HWY_DYNAMIC_DISPATCH(LayerNormRows)(r, y, ldy); }
void rms_norm(const NormRows& r, float* y, int64_t ldy) { HWY_DYNAMIC_DISPATCH(RmsNormRows)(r, y, ldy); }
void layer_norm_backward(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g) {
  HWY_DYNAMIC_DISPATCH(LayerNormBack)(r, dy, ldy, g);
}
void rms_norm_backward(const NormRows& r, const float* dy, int64_t ldy, const NormGradient& g) {
  HWY_DYNAMIC_DISPATCH(RmsNormBack)(r, dy, ldy, g);
}

}  // namespace bary::kernel
#endif
