// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/optimizer.h"

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/optimizer.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

void AddInOrder(const float* const* parts, int64_t count, int64_t n, float* sum) {
  for (int64_t i = 0; i < n; i += 16) {
    V16 s = load_n(sum + i, n - i);
    for (int64_t p = 0; p < count; ++p) s = s + load_n(parts[p] + i, n - i);
    store_n(s, sum + i, n - i);
  }
}

double SquaredNorm(const float* x, int64_t n) {
  V16 s = zero();
  for (int64_t i = 0; i < n; i += 16) {
    V16 a = load_n(x + i, n - i);
    s = fma(a, a, s);
  }
  return sum_lanes(s);
}

void Adam(const AdamW& o, int64_t n, const float* gradient, float* p, float* m, float* v) {
  const V16 keep = set1(1.0f - o.learning_rate * o.decay), b1 = set1(o.beta1), b2 = set1(o.beta2);
  const V16 c1 = set1(o.rest1), c2 = set1(o.rest2), eps = set1(o.eps), scale = set1(o.gradient_scale);
  const V16 step = set1(o.learning_rate / o.correction1), root = set1(o.sqrt_correction2);
  for (int64_t i = 0; i < n; i += 16) {
    int64_t left = n - i;
    V16 g = load_n(gradient + i, left) * scale;
    V16 mi = fma(b1, load_n(m + i, left), c1 * g), vi = fma(b2, load_n(v + i, left), c2 * (g * g));
    store_n(mi, m + i, left);
    store_n(vi, v + i, left);
    V16 update = mi / (sqrt(vi) / root + eps);
    store_n(fnma(step, update, load_n(p + i, left) * keep), p + i, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(AddInOrder);
HWY_EXPORT(SquaredNorm);
HWY_EXPORT(Adam);

void add_in_order(std::span<const float* const> parts, int64_t n, float* sum) {
  HWY_DYNAMIC_DISPATCH(AddInOrder)(parts.data(), static_cast<int64_t>(parts.size()), n, sum);
}
double squared_norm(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SquaredNorm)(x, n); }
void adamw(const AdamW& o, int64_t n, const float* gradient, float* p, float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(Adam)(o, n, gradient, p, m, v);
}

}  // namespace bary::kernel
#endif
