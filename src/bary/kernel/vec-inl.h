// SPDX-License-Identifier: Apache-2.0
// V16: sixteen floats, the one vector type of every kernel, whatever the machine's registers hold (one of AVX-512, two
// of AVX2, four of NEON, an array under the baseline). Lane = absolute index modulo 16, and sums end in one fixed tree,
// so that horizontal sums give the same bits everywhere (docs/numerics.md).
#if defined(BARY_KERNEL_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BARY_KERNEL_VEC_INL_H_
#undef BARY_KERNEL_VEC_INL_H_
#else
#define BARY_KERNEL_VEC_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

#if defined(__clang__)
#define BARY_UNROLL _Pragma("clang loop unroll(full)")
#else
#define BARY_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#undef BARY_SCALAR
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
#define BARY_SCALAR 1
#else
#define BARY_SCALAR 0
#endif
#if !BARY_SCALAR && HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_NEON
#error "The kernels have no vector for this Highway target; include kernel/targets.h first, which leaves it out."
#endif
#undef BARY_EACH

#if BARY_SCALAR

struct V16 {
  float v[16];
};
struct M16 {
  bool v[16];
};
#define BARY_EACH(expr)                         \
  V16 r;                                        \
  for (int i = 0; i < 16; ++i) r.v[i] = (expr); \
  return r
HWY_INLINE V16 set1(float x) noexcept { BARY_EACH(x); }
HWY_INLINE V16 load(const float* p) noexcept { BARY_EACH(p[i]); }
HWY_INLINE V16 load_n(const float* p, int64_t n) noexcept { BARY_EACH(i < n ? p[i] : 0.0f); }
HWY_INLINE void store(V16 a, float* p) noexcept { std::memcpy(p, a.v, 64); }
HWY_INLINE void store_n(V16 a, float* p, int64_t n) noexcept { std::memcpy(p, a.v, 4 * (n < 16 ? n : 16)); }
HWY_INLINE V16 operator+(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] + b.v[i]); }
HWY_INLINE V16 operator-(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] - b.v[i]); }
HWY_INLINE V16 operator*(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] * b.v[i]); }
HWY_INLINE V16 operator/(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] / b.v[i]); }
HWY_INLINE V16 fma(V16 a, V16 b, V16 c) noexcept { BARY_EACH(std::fma(a.v[i], b.v[i], c.v[i])); }    // a b + c
HWY_INLINE V16 fnma(V16 a, V16 b, V16 c) noexcept { BARY_EACH(std::fma(-a.v[i], b.v[i], c.v[i])); }  // c - a b
HWY_INLINE V16 max(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
HWY_INLINE V16 min(V16 a, V16 b) noexcept { BARY_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
HWY_INLINE V16 abs(V16 a) noexcept { BARY_EACH(std::fabs(a.v[i])); }
HWY_INLINE V16 sqrt(V16 a) noexcept { BARY_EACH(std::sqrt(a.v[i])); }
HWY_INLINE V16 round(V16 a) noexcept { BARY_EACH(std::nearbyint(a.v[i])); }
HWY_INLINE V16 power_of_two(V16 n) noexcept {  // 2^n for whole n in [-126, 127]
  V16 r;
  for (int i = 0; i < 16; ++i) {
    int32_t bits = static_cast<int32_t>(n.v[i] == n.v[i] ? n.v[i] : 0) + 127;
    bits = static_cast<int32_t>(static_cast<uint32_t>(bits) << 23);
    std::memcpy(&r.v[i], &bits, 4);
  }
  return r;
}
HWY_INLINE M16 operator<(V16 a, V16 b) noexcept {
  M16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = a.v[i] < b.v[i];
  return r;
}
HWY_INLINE V16 select(M16 m, V16 yes, V16 no) noexcept { BARY_EACH(m.v[i] ? yes.v[i] : no.v[i]); }
HWY_INLINE float max_lane(V16 a) noexcept {
  float m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
HWY_INLINE float sum_lanes(V16 a) noexcept {
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half; ++i) a.v[i] = a.v[i] + a.v[i + half];
  return a.v[0];
}

#else

using D16 = hn::CappedTag<float, 16>;
using Vec = hn::Vec<D16>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D16()));
constexpr int kParts = 16 / kLanes;
struct V16 {
  Vec v[kParts];
};
struct M16 {
  hn::Mask<D16> v[kParts];
};
#define BARY_EACH(expr)                                         \
  V16 r;                                                        \
  BARY_UNROLL for (int i = 0; i < kParts; ++i) r.v[i] = (expr); \
  return r
HWY_INLINE V16 set1(float x) noexcept { BARY_EACH(hn::Set(D16(), x)); }
HWY_INLINE V16 load(const float* p) noexcept { BARY_EACH(hn::LoadU(D16(), p + i * kLanes)); }
// Loads and stores of fewer than 16: never touch what lies beyond n.
HWY_INLINE Vec load_part(const float* p, int64_t m) noexcept {
  if (m >= kLanes) return hn::LoadU(D16(), p);
  if (m <= 0) return hn::Zero(D16());
#if HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(D16(), static_cast<size_t>(m)), D16(), p);
#else
  float lanes[kLanes] = {};
  std::memcpy(lanes, p, static_cast<size_t>(m) * 4);
  return hn::LoadU(D16(), lanes);
#endif
}
HWY_INLINE void store_part(Vec v, float* p, int64_t m) noexcept {
  if (m >= kLanes) return hn::StoreU(v, D16(), p);
  if (m <= 0) return;
#if HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(D16(), static_cast<size_t>(m)), D16(), p);
#else
  float lanes[kLanes];
  hn::StoreU(v, D16(), lanes);
  std::memcpy(p, lanes, static_cast<size_t>(m) * 4);
#endif
}
HWY_INLINE V16 load_n(const float* p, int64_t n) noexcept { BARY_EACH(load_part(p + i * kLanes, n - i * kLanes)); }
HWY_INLINE void store(V16 a, float* p) noexcept {
  BARY_UNROLL for (int i = 0; i < kParts; ++i) hn::StoreU(a.v[i], D16(), p + i * kLanes);
}
HWY_INLINE void store_n(V16 a, float* p, int64_t n) noexcept {
  BARY_UNROLL for (int i = 0; i < kParts; ++i) store_part(a.v[i], p + i * kLanes, n - i * kLanes);
}
HWY_INLINE V16 operator+(V16 a, V16 b) noexcept { BARY_EACH(hn::Add(a.v[i], b.v[i])); }
HWY_INLINE V16 operator-(V16 a, V16 b) noexcept { BARY_EACH(hn::Sub(a.v[i], b.v[i])); }
HWY_INLINE V16 operator*(V16 a, V16 b) noexcept { BARY_EACH(hn::Mul(a.v[i], b.v[i])); }
HWY_INLINE V16 operator/(V16 a, V16 b) noexcept { BARY_EACH(hn::Div(a.v[i], b.v[i])); }
HWY_INLINE V16 fma(V16 a, V16 b, V16 c) noexcept { BARY_EACH(hn::MulAdd(a.v[i], b.v[i], c.v[i])); }      // a b + c
HWY_INLINE V16 fnma(V16 a, V16 b, V16 c) noexcept { BARY_EACH(hn::NegMulAdd(a.v[i], b.v[i], c.v[i])); }  // c - a b
// a > b ? a : b, so b where either is NaN: what x86 does; NEON's own would give the NaN.
template <class V>
HWY_INLINE V larger(V a, V b) noexcept {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}
template <class V>
HWY_INLINE V smaller(V a, V b) noexcept {
#if HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}
HWY_INLINE V16 max(V16 a, V16 b) noexcept { BARY_EACH(larger(a.v[i], b.v[i])); }
HWY_INLINE V16 min(V16 a, V16 b) noexcept { BARY_EACH(smaller(a.v[i], b.v[i])); }
HWY_INLINE V16 abs(V16 a) noexcept { BARY_EACH(hn::Abs(a.v[i])); }
HWY_INLINE V16 sqrt(V16 a) noexcept { BARY_EACH(hn::Sqrt(a.v[i])); }
HWY_INLINE V16 round(V16 a) noexcept { BARY_EACH(hn::Round(a.v[i])); }
HWY_INLINE V16 power_of_two(V16 n) noexcept {  // 2^n for whole n in [-126, 127]
  const hn::RebindToSigned<D16> di;
  BARY_EACH(hn::BitCast(D16(), hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n.v[i]), hn::Set(di, 127)))));
}
HWY_INLINE M16 operator<(V16 a, V16 b) noexcept {
  M16 r;
  BARY_UNROLL for (int i = 0; i < kParts; ++i) r.v[i] = hn::Lt(a.v[i], b.v[i]);
  return r;
}
HWY_INLINE V16 select(M16 m, V16 yes, V16 no) noexcept { BARY_EACH(hn::IfThenElse(m.v[i], yes.v[i], no.v[i])); }

// The tree: lanes i and i+8, then i+4, i+2, i+1.
template <class Op>
HWY_INLINE float fold_lanes(V16 a, Op op) noexcept {
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  auto eight = op(hn::LowerHalf(d8, a.v[0]), hn::UpperHalf(d8, a.v[0]));
  auto four = op(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight));
#elif HWY_TARGET == HWY_AVX2
  auto eight = op(a.v[0], a.v[1]);
  auto four = op(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight));
#else
  auto four = op(op(a.v[0], a.v[2]), op(a.v[1], a.v[3]));
#endif
  auto two = op(four, hn::Shuffle1032(four));
  return hn::GetLane(op(two, hn::Shuffle2301(two)));
}
struct AddLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct MaxLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return larger(a, b);
  }
};
HWY_INLINE float sum_lanes(V16 a) noexcept { return fold_lanes(a, AddLanes()); }
HWY_INLINE float max_lane(V16 a) noexcept { return fold_lanes(a, MaxLanes()); }

#endif
#undef BARY_EACH

HWY_INLINE V16 zero() noexcept { return set1(0.0f); }

HWY_ALIGN constexpr float kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
HWY_INLINE V16 first_n(V16 a, int64_t n, V16 rest) noexcept {  // the first n lanes of a, then those of rest
  return n >= 16 ? a : select(load(kIota) < set1(static_cast<float>(n)), a, rest);
}

// Columns of packed panels and of the widest register tile, in floats: what the register file of the target holds.
#if HWY_TARGET == HWY_AVX3
constexpr int kPanel = 64;
#else
constexpr int kPanel = 16;
#endif

// out[i ldo + j] = a[j lda + i] for j < rows, i < columns; tiles of four by four in registers.
HWY_INLINE void transpose(const float* a, int64_t lda, int64_t rows, int64_t columns, float* out,
                          int64_t ldo) noexcept {
  int64_t j = 0;
#if !BARY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::RepartitionToWide<decltype(d)> two;
  for (; j + 4 <= rows; j += 4) {
    const float* from = a + j * lda;
    int64_t i = 0;
    for (; i + 4 <= columns; i += 4) {
      auto r0 = hn::LoadU(d, from + i), r1 = hn::LoadU(d, from + lda + i);
      auto r2 = hn::LoadU(d, from + 2 * lda + i), r3 = hn::LoadU(d, from + 3 * lda + i);
      auto l01 = hn::BitCast(two, hn::InterleaveLower(d, r0, r1)),
           h01 = hn::BitCast(two, hn::InterleaveUpper(d, r0, r1));
      auto l23 = hn::BitCast(two, hn::InterleaveLower(d, r2, r3)),
           h23 = hn::BitCast(two, hn::InterleaveUpper(d, r2, r3));
      float* to = out + i * ldo + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(two, l01, l23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(two, l01, l23)), d, to + ldo);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(two, h01, h23)), d, to + 2 * ldo);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(two, h01, h23)), d, to + 3 * ldo);
    }
    for (; i < columns; ++i) {
      for (int64_t q = 0; q < 4; ++q) out[i * ldo + j + q] = from[q * lda + i];
    }
  }
#endif
  for (; j < rows; ++j) {
    for (int64_t i = 0; i < columns; ++i) out[i * ldo + j] = a[j * lda + i];
  }
}

// e^x: x = n ln 2 + r, a polynomial of degree 6 in r (least maximal error 3e-9, own fit), 2^n by exponent bits.
// Below -86.6 (2.5e-38) the result is 0, above 88.72 +inf, NaN stays NaN. Error below 1.1e-7 relative (vec_test.cc).
HWY_INLINE V16 exp(V16 x) noexcept {
  V16 n = round(min(max(x * set1(1.44269504f), set1(-125.0f)), set1(128.0f)));
  V16 r = fma(n, set1(-0.693145752f), x);  // ln 2 in two parts; the first has 15 trailing zeros, so n times it is exact
  r = fma(n, set1(-1.42860677e-6f), r);
  V16 p = fma(set1(0.00138144672f), r, set1(0.00836878084f));
  p = fma(p, r, set1(0.0416683927f));
  p = fma(p, r, set1(0.166665196f));
  p = fma(p, r, set1(0.49999994f));
  p = fma(p, r * r, r) + set1(1.0f);
  V16 y = p * power_of_two(n - set1(1.0f)) * set1(2.0f);  // in two steps: 2^128 has no float
  y = select(x < set1(-86.6f), zero(), y);
  return select(set1(88.72f) < x, set1(HUGE_VALF), y);
}

// The standard normal's upper tail Q(z) = P(N > z) for z >= 0: e^{-z^2/2} t P(t), t = 1 / (1 + 0.35 z), P of degree 8
// (own fit, least maximal relative error 3.2e-8). Given e = e^{-z^2/2}.
HWY_INLINE V16 normal_tail(V16 z, V16 e) noexcept {
  V16 t = set1(1.0f) / fma(set1(0.35f), z, set1(1.0f));
  V16 p = fma(set1(-0.0291148459f), t, set1(0.143817658f));
  p = fma(p, t, set1(-0.255389582f));
  p = fma(p, t, set1(0.158795081f));
  p = fma(p, t, set1(-0.022842505f));
  p = fma(p, t, set1(0.105391797f));
  p = fma(p, t, set1(0.119863168f));
  p = fma(p, t, set1(0.139857552f));
  p = fma(p, t, set1(0.139621661f));
  return p * t * e;
}

// s(x) = 1 / (1 + e^-x) and s(-x) = 1 - s(x), each to its own last digits: a subtraction from 1 would lose the smaller.
struct Sigmoids {
  V16 of, of_minus;
};
HWY_INLINE Sigmoids sigmoids(V16 x) noexcept {
  V16 e = exp(zero() - abs(x)), larger = set1(1.0f) / (set1(1.0f) + e), smaller = e * larger;
  M16 negative = x < zero();
  return {select(negative, smaller, larger), select(negative, larger, smaller)};
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
