// SPDX-License-Identifier: Apache-2.0
// The functions of gates: tanh and sigmoid, from the exponential of vec-inl.h.
#if defined(BARY_KERNEL_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BARY_KERNEL_TANH_INL_H_
#undef BARY_KERNEL_TANH_INL_H_
#else
#define BARY_KERNEL_TANH_INL_H_
#endif

#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// tanh |x| = -m / (2 + m) with m = e^(-2|x|) - 1, which keeps its last digits near 0 where e^(-2|x|) alone loses them:
// e^r - 1 is exp's polynomial before its last addition. Error below 1.8e-7 relative (recurrent_test.cc); NaN stays NaN.
HWY_INLINE V16 tanh(V16 x) noexcept {
  V16 z = max(set1(-40.0f), set1(-2.0f) * abs(x));  // in this order: of a NaN, max gives the second
  V16 n = round(z * set1(1.44269504f));
  V16 r = fma(n, set1(-0.693145752f), z);
  r = fma(n, set1(-1.42860677e-6f), r);
  V16 p = fma(set1(0.00138144672f), r, set1(0.00836878084f));
  p = fma(p, r, set1(0.0416683927f));
  p = fma(p, r, set1(0.166665196f));
  p = fma(p, r, set1(0.49999994f));
  V16 s = power_of_two(n), m = fma(fma(p, r * r, r), s, s - set1(1.0f));
  V16 t = (zero() - m) / (set1(2.0f) + m);
  return select(x < zero(), zero() - t, t);
}

HWY_INLINE V16 sigmoid(V16 x) noexcept { return sigmoids(x).of; }

// Their derivatives from their values
HWY_INLINE V16 tanh_slope(V16 y) noexcept { return fnma(y, y, set1(1.0f)); }
HWY_INLINE V16 sigmoid_slope(V16 y) noexcept { return y * (set1(1.0f) - y); }

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
