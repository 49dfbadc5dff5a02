// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/loss.h"

#include "bary/base/portable_math.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/loss.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

HWY_INLINE float row_max(const float* x, int64_t n) {
  const V16 lowest = set1(-HUGE_VALF);
  V16 top = lowest, second = lowest, third = lowest, fourth = lowest;  // a maximum is the same in any order
  int64_t j = 0;
  for (; j + 64 <= n; j += 64) {
    top = max(load(x + j), top);
    second = max(load(x + j + 16), second);
    third = max(load(x + j + 32), third);
    fourth = max(load(x + j + 48), fourth);
  }
  for (; j < n; j += 16) top = max(first_n(load_n(x + j, n - j), n - j, lowest), top);
  return max_lane(max(max(top, second), max(third, fourth)));
}

// y = exp(x - m), returns the sum
HWY_INLINE float exponentials(const float* x, int64_t n, float m, float* y) {
  V16 base = set1(m), sum = zero();
  for (int64_t j = 0; j < n; j += 16) {
    V16 e = exp(load_n(x + j, n - j) - base);
    sum = sum + first_n(e, n - j, zero());
    store_n(e, y + j, n - j);
  }
  return sum_lanes(sum);
}

float row_mean(const float* x, int64_t n) {
  V16 sum = zero();
  for (int64_t j = 0; j < n; j += 16) sum = sum + first_n(load_n(x + j, n - j), n - j, zero());
  return sum_lanes(sum) / static_cast<float>(n);
}

void CrossEntropyRows(int64_t rows, int64_t n, float* logits, int64_t ld, const int32_t* targets, float weight,
                      double* losses, float smoothing) {
  for (int64_t r = 0; r < rows; ++r) {
    float* x = logits + r * ld;
    bool counted = targets[r] >= 0;
    if (!counted) {
      for (int64_t j = 0; j < n && weight != 0; ++j) x[j] = 0;
      if (losses) losses[r] = 0;
      continue;
    }
    float m = row_max(x, n), at_target = x[targets[r]];
    const float mean = smoothing > 0 ? row_mean(x, n) : 0;
    float sum = exponentials(x, n, m, x);
    if (losses) {
      losses[r] = portable::log(static_cast<double>(sum)) + (static_cast<double>(m) - static_cast<double>(at_target));
      if (smoothing > 0)
        losses[r] += static_cast<double>(smoothing) * (static_cast<double>(at_target) - static_cast<double>(mean));
    }
    if (weight == 0) continue;
    V16 scale = set1(weight / sum);
    const V16 spread = set1(weight * smoothing / static_cast<float>(n));
    for (int64_t j = 0; j < n; j += 16) store_n(load_n(x + j, n - j) * scale - spread, x + j, n - j);
    x[targets[r]] -= weight * (1 - smoothing);
  }
}

void SoftmaxRows(int64_t rows, int64_t n, const float* x, int64_t ldx, float* y, int64_t ldy) {
  for (int64_t r = 0; r < rows; ++r) {
    float m = row_max(x + r * ldx, n), sum = exponentials(x + r * ldx, n, m, y + r * ldy);
    V16 inverse = set1(1.0f / sum);
    for (int64_t j = 0; j < n; j += 16) {
      store_n(load_n(y + r * ldy + j, n - j) * inverse, y + r * ldy + j, n - j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(CrossEntropyRows);
HWY_EXPORT(SoftmaxRows);

void cross_entropy_rows(int64_t rows, int64_t n, float* logits, int64_t ld, const int32_t* targets, float weight,
                        double* losses, float smoothing) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyRows)(rows, n, logits, ld, targets, weight, losses, smoothing);
}
void softmax_rows(int64_t rows, int64_t n, const float* x, int64_t ldx, float* y, int64_t ldy) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRows)(rows, n, x, ldx, y, ldy);
}

}  // namespace bary::kernel
#endif
