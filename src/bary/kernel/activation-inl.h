// SPDX-License-Identifier: Apache-2.0
// Activations with their derivatives, both from one exponential.
#if defined(BARY_KERNEL_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BARY_KERNEL_ACTIVATION_INL_H_
#undef BARY_KERNEL_ACTIVATION_INL_H_
#else
#define BARY_KERNEL_ACTIVATION_INL_H_
#endif

#include "bary/kernel/gemm.h"
#include "bary/kernel/tanh-inl.h"
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

struct Activated {
  V16 value, derivative;
};

HWY_INLINE Activated identity(V16 x) { return {x, set1(1.0f)}; }
HWY_INLINE Activated gelu(V16 x) {  // P(N < x) and its derivative, the normal density
  V16 z = abs(x), e = exp(zero() - x * x * set1(0.5f)), tail = normal_tail(z, e);
  V16 p = select(x < zero(), tail, set1(1.0f) - tail);
  return {x * p, fma(x * set1(0.398942280f), e, p)};
}
HWY_INLINE Activated gelu_tanh(V16 x) {  // s = sigmoid(2u), u = c (x + 0.044715 x^3); g' = s + x s (1-s) 2u'
  const float c = 0.797884561f;
  V16 x2 = x * x, u2 = x * fma(x2, set1(2 * c * 0.044715f), set1(2 * c));
  Sigmoids s = sigmoids(u2);
  V16 g = x * s.of, du2 = fma(x2, set1(6 * c * 0.044715f), set1(2 * c));
  return {g, fma(g * s.of_minus, du2, s.of)};
}
HWY_INLINE Activated relu(V16 x) {
  M16 on = zero() < x;
  M16 off = x < zero();
  V16 y = select(on, x, select(off, zero(), x * zero()));  // x 0 keeps a NaN a NaN
  return {y, select(on, set1(1.0f), zero())};
}
HWY_INLINE Activated silu(V16 x) {
  Sigmoids s = sigmoids(x);
  V16 g = x * s.of;
  return {g, fma(g, s.of_minus, s.of)};
}

HWY_INLINE Activated hyperbolic_tangent(V16 x) {
  V16 t = tanh(x);
  return {t, tanh_slope(t)};
}

// In place over a block of m rows and n columns; the derivative goes beside it if asked for.
template <class F>
HWY_INLINE void activate_block(F f, int64_t m, int64_t n, float* c, int64_t ldc, float* d, int64_t ldd) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; j += 16) {
      Activated y = f(load_n(c + i * ldc + j, n - j));
      store_n(y.value, c + i * ldc + j, n - j);
      if (d) store_n(y.derivative, d + i * ldd + j, n - j);
    }
  }
}
struct IdentityF {
  HWY_INLINE Activated operator()(V16 x) const { return identity(x); }
};
struct GeluF {
  HWY_INLINE Activated operator()(V16 x) const { return gelu(x); }
};
struct GeluTanhF {
  HWY_INLINE Activated operator()(V16 x) const { return gelu_tanh(x); }
};
struct ReluF {
  HWY_INLINE Activated operator()(V16 x) const { return relu(x); }
};
struct SiluF {
  HWY_INLINE Activated operator()(V16 x) const { return silu(x); }
};
struct TanhF {
  HWY_INLINE Activated operator()(V16 x) const { return hyperbolic_tangent(x); }
};
HWY_INLINE void activate(Activation a, int64_t m, int64_t n, float* c, int64_t ldc, float* d, int64_t ldd) {
  switch (a) {
    case Activation::none:
      if (d) activate_block(IdentityF(), m, n, c, ldc, d, ldd);
      return;
    case Activation::gelu:
      return activate_block(GeluF(), m, n, c, ldc, d, ldd);
    case Activation::gelu_tanh:
      return activate_block(GeluTanhF(), m, n, c, ldc, d, ldd);
    case Activation::relu:
      return activate_block(ReluF(), m, n, c, ldc, d, ldd);
    case Activation::silu:
      return activate_block(SiluF(), m, n, c, ldc, d, ldd);
    case Activation::tanh:
      return activate_block(TanhF(), m, n, c, ldc, d, ldd);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
