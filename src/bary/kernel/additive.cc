// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/additive.h"

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/additive.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

void Scores(const AdditiveInputs& in, Strided<float> scores) {
  for (int64_t t = 0; t < in.T; ++t) {
    for (int64_t j = 0; j < in.S; ++j) {
      V16 sum = zero();
      for (int64_t a = 0; a < in.A; a += 16) {
        const int64_t left = in.A - a;
        V16 y = tanh(load_n(in.q.row(t) + a, left) + load_n(in.k.row(j) + a, left));
        sum = fma(load_n(in.v + a, left), y, sum);
      }
      scores.row(t)[j] = sum_lanes(sum);
    }
  }
}

// Sixteen channels at a time: no sum here crosses channels, and the keys' part of them stays in the first-level cache.
void ScoresBackward(const AdditiveInputs& in, Strided<const float> ds, const AdditiveGradients& g) {
  for (int64_t a = 0; a < in.A; a += 16) {
    const int64_t left = in.A - a;
    const V16 v = load_n(in.v + a, left);
    for (int64_t j = 0; j < in.S; ++j) store_n(zero(), g.dk.row(j) + a, left);
    for (int64_t t = 0; t < in.T; ++t) {
      const V16 q = load_n(in.q.row(t) + a, left);
      V16 dq = zero(), sum = zero();
      for (int64_t j = 0; j < in.S; ++j) {
        const V16 s = set1(ds.row(t)[j]), y = tanh(q + load_n(in.k.row(j) + a, left)), slope = tanh_slope(y);
        float* dk = g.dk.row(j) + a;
        sum = fma(s, y, sum);
        dq = fma(s, slope, dq);
        store_n(fma(s, slope, load_n(dk, left)), dk, left);
      }
      store_n(dq * v, g.dq.row(t) + a, left);
      store_n(sum, g.sum.row(t) + a, left);
    }
    for (int64_t j = 0; j < in.S; ++j) store_n(load_n(g.dk.row(j) + a, left) * v, g.dk.row(j) + a, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(Scores);
HWY_EXPORT(ScoresBackward);

void additive_scores(const AdditiveInputs& in, Strided<float> scores) { HWY_DYNAMIC_DISPATCH(Scores)(in, scores); }
void additive_scores_backward(const AdditiveInputs& in, Strided<const float> dscores, const AdditiveGradients& g) {
  HWY_DYNAMIC_DISPATCH(ScoresBackward)(in, dscores, g);
}

}  // namespace bary::kernel
#endif
