// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/rows.h"

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/rows.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "bary/kernel/activation-inl.h"
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

void AddRows(int64_t rows, int64_t n, const float* a, int64_t lda, float* y, int64_t ldy) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; j += 16) {
      store_n(load_n(y + r * ldy + j, n - j) + load_n(a + r * lda + j, n - j), y + r * ldy + j, n - j);
    }
  }
}

void ActivateRows(Activation act, int64_t rows, int64_t n, float* x, int64_t ldx, float* d, int64_t ldd) {
  activate(act, rows, n, x, ldx, d, ldd);
}

void PrefixMean(int64_t T, int64_t n, int64_t first, const float* x, int64_t ldx, float* sum, float* y, int64_t ldy) {
  for (int64_t j = 0; j < n; j += 16) {
    V16 s = load_n(sum + j, n - j);
    for (int64_t t = 0; t < T; ++t) {
      s = s + load_n(x + t * ldx + j, n - j);
      store_n(s / set1(static_cast<float>(first + t + 1)), y + t * ldy + j, n - j);
    }
    store_n(s, sum + j, n - j);
  }
}

void PrefixMeanBack(int64_t T, int64_t n, const float* dy, int64_t ldy, float* dx, int64_t ldx, bool accumulate) {
  for (int64_t j = 0; j < n; j += 16) {
    V16 s = zero();
    for (int64_t t = T - 1; t >= 0; --t) {
      s = s + load_n(dy + t * ldy + j, n - j) / set1(static_cast<float>(t + 1));
      float* to = dx + t * ldx + j;
      store_n(accumulate ? s + load_n(to, n - j) : s, to, n - j);
    }
  }
}

void RotateRows(int64_t T, int64_t heads, int64_t D, float* x, int64_t ldx, const float* cosines, const float* sines,
                float sign) {
  const int64_t half = D / 2;
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t h = 0; h < heads; ++h) {
      float* row = x + t * ldx + h * D;
      for (int64_t i = 0; i < half; i += 16) {
        int64_t left = half - i;
        V16 c = load_n(cosines + t * half + i, left), s = load_n(sines + t * half + i, left) * set1(sign);
        V16 a = load_n(row + i, left), b = load_n(row + half + i, left);
        store_n(fnma(b, s, a * c), row + i, left);
        store_n(fma(a, s, b * c), row + half + i, left);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(AddRows);
HWY_EXPORT(ActivateRows);
HWY_EXPORT(PrefixMean);
HWY_EXPORT(PrefixMeanBack);
HWY_EXPORT(RotateRows);

void add_rows(int64_t rows, int64_t n, const float* a, int64_t lda, float* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(AddRows)(rows, n, a, lda, y, ldy);
}
void activate_rows(Activation act, int64_t rows, int64_t n, float* x, int64_t ldx, float* derivative, int64_t ldd) {
  HWY_DYNAMIC_DISPATCH(ActivateRows)(act, rows, n, x, ldx, derivative, ldd);
}
void prefix_mean(int64_t T, int64_t n, int64_t first, const float* x, int64_t ldx, float* sum, float* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(PrefixMean)(T, n, first, x, ldx, sum, y, ldy);
}
void prefix_mean_backward(int64_t T, int64_t n, const float* dy, int64_t ldy, float* dx, int64_t ldx, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(PrefixMeanBack)(T, n, dy, ldy, dx, ldx, accumulate);
}
void rotate_rows(int64_t T, int64_t heads, int64_t D, float* x, int64_t ldx, const float* cosines, const float* sines,
                 float sign) {
  HWY_DYNAMIC_DISPATCH(RotateRows)(T, heads, D, x, ldx, cosines, sines, sign);
}

}  // namespace bary::kernel
#endif
