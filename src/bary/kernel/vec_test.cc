// SPDX-License-Identifier: Apache-2.0
// The vector type under every kernel and the functions on it, on each instruction set.
#include <gtest/gtest.h>

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/vec_test.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

void Exp(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) store_n(exp(load_n(x + i, n - i)), y + i, n - i);
}
// given both z and e^{-z^2/2}
void NormalTail(const float* z, const float* e, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) store_n(normal_tail(load_n(z + i, n - i), load_n(e + i, n - i)), y + i, n - i);
}
void CopyPart(const float* x, int64_t n, float* whole, float* part) {
  V16 v = load_n(x, n);
  store(v, whole);
  store_n(v, part, n);
}
void FirstN(const float* x, int64_t n, float* y) { store(first_n(load(x), n, set1(-7.0f)), y); }
float SumLanes(const float* x) { return sum_lanes(load(x)); }
float MaxLane(const float* x) { return max_lane(load(x)); }
void Each(const float* a, const float* b, const float* c, float* y) {
  V16 x = load(a), z = load(b), w = load(c);
  V16 all[12] = {x + z,     x - z,     x * z,  x / z,        fma(x, z, w), fnma(x, z, w),
                 max(x, z), min(x, z), abs(x), sqrt(abs(x)), round(x),     select(x < z, x, w)};
  for (int i = 0; i < 12; ++i) store(all[i], y + 16 * i);
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "bary/base/parallel.h"
#include "bary/kernel/checks_test.h"

namespace bary::kernel {
HWY_EXPORT(Exp);
HWY_EXPORT(NormalTail);
HWY_EXPORT(CopyPart);
HWY_EXPORT(FirstN);
HWY_EXPORT(SumLanes);
HWY_EXPORT(MaxLane);
HWY_EXPORT(Each);

namespace {

constexpr float kInf = HUGE_VALF;

std::vector<float> exp_of(const std::vector<float>& x) {
  return on_every_isa("exp", [&] {
    std::vector<float> y(x.size());
    HWY_DYNAMIC_DISPATCH(Exp)(x.data(), static_cast<int64_t>(x.size()), y.data());
    return y;
  });
}

TEST(Vec, ExpWithinItsBoundOverTheWholeRange) {
  std::vector<float> x;
  for (double v = -86.6; v < 88.72; v += 0.0007) x.push_back(static_cast<float>(v));
  for (double v = 1e-12; v < 1; v *= 1.3) x.push_back(static_cast<float>(v)), x.push_back(static_cast<float>(-v));
  for (int n = -124; n < 128; ++n)  // the borders of the reduction
    for (double d : {-1e-5, 0.0, 1e-5}) x.push_back(static_cast<float>((n + 0.5) * std::log(2.0) + d));
  std::vector<float> y = exp_of(x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < -86.6f) continue;
    double error = std::fabs(y[i] / std::exp(static_cast<double>(x[i])) - 1);
    ASSERT_TRUE(error <= 1.1e-7) << x[i] << " -> " << y[i];
    worst = std::max(worst, error);
  }
  EXPECT_GT(worst, 3e-8);  // the rounding of a float alone
}

TEST(Vec, ExpAtTheEnds) {
  std::vector<float> x{0, -0.0f, -86.7f, -100, -1e30f, -kInf, 88.8f, 1e30f, kInf, NAN, 88.72f, -86.59f, 1e-44f};
  std::vector<float> y = exp_of(x);
  std::vector<float> want{1, 1, 0, 0, 0, 0, kInf, kInf, kInf};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(y[i], want[i]) << x[i];
  EXPECT_TRUE(std::isnan(y[9]));
  EXPECT_TRUE(y[10] > 3e38f && y[10] < kInf);
  EXPECT_TRUE(y[11] > 2e-38f && y[11] < 3e-38f);
  EXPECT_EQ(y[12], 1);
}

TEST(Vec, ExpHasTheSameBitsWithDenormalsFlushed) {
  std::vector<float> x;
  for (float v = -87; v < -86; v += 0.001f) x.push_back(v);
  std::vector<float> plain = exp_of(x);
  FlushDenormals flush;
  expect_same_bits(exp_of(x), plain, "flushed");
}

TEST(Vec, NormalTail) {
  std::vector<float> z, e;
  for (double v = 0; v < 13; v += 0.001) {
    z.push_back(static_cast<float>(v));
    e.push_back(static_cast<float>(std::exp(-0.5 * static_cast<double>(z.back()) * static_cast<double>(z.back()))));
  }
  std::vector<float> y = on_every_isa("normal_tail", [&] {
    std::vector<float> out(z.size());
    HWY_DYNAMIC_DISPATCH(NormalTail)(z.data(), e.data(), static_cast<int64_t>(z.size()), out.data());
    return out;
  });
  for (size_t i = 0; i < z.size(); ++i) {
    double x = z[i], exact = 0.5 * std::erfc(x / std::sqrt(2.0)) * (e[i] / std::exp(-0.5 * x * x));
    ASSERT_TRUE(std::fabs(y[i] / exact - 1) <= 4 * kEps) << x << " -> " << y[i] << " for " << exact;
  }
}

TEST(Vec, PartsTouchNothingBeyondTheirLength) {
  KeepIsa keep;
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    for (int64_t n = 0; n <= 20; ++n) {
      Matrix x(1, std::min<int64_t>(n, 16)), part(1, std::min<int64_t>(n, 16)), whole(1, 16);
      x.random(1);
      HWY_DYNAMIC_DISPATCH(CopyPart)(x.data(), n, whole.data(), part.data());
      expect_same_bits(part.values(), x.values(), isa);
      for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(whole(0, i), i < n ? x(0, i) : 0.0f) << isa << " " << n;
      Matrix all(1, 16), y(1, 16);
      all.random(2);
      HWY_DYNAMIC_DISPATCH(FirstN)(all.data(), n, y.data());
      for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y(0, i), i < n ? all(0, i) : -7.0f) << isa << " " << n;
    }
  }
}

TEST(Vec, SumIsTheDocumentedTree) {
  Matrix x(1, 16);
  for (uint64_t seed = 1; seed < 50; ++seed) {
    x.random(seed, 1e3);
    float tree[16];
    std::copy_n(x.data(), 16, tree);
    for (int half = 8; half; half /= 2)
      for (int i = 0; i < half; ++i) tree[i] = tree[i] + tree[i + half];
    std::vector<float> got = on_every_isa("sum", [&] {
      return std::vector<float>{HWY_DYNAMIC_DISPATCH(SumLanes)(x.data()), HWY_DYNAMIC_DISPATCH(MaxLane)(x.data())};
    });
    EXPECT_EQ(got[0], tree[0]);
    EXPECT_EQ(got[1], *std::max_element(x.data(), x.data() + 16));
  }
}

// Signed zeros and NaN too: where two sets differ here, some kernel differs on bad input.
TEST(Vec, EveryOperationOnSpecialValues) {
  const float special[] = {0,   -0.0f,  1,       -1,    2.5f, -3.5f, kInf, -kInf,
                           NAN, 1e-42f, -1e-42f, 1e38f, 0.5f, -0.5f, 3,    1e-20f};
  for (int turn = 0; turn < 16; ++turn) {
    Matrix a(1, 16), b(1, 16), c(1, 16);
    a.set([&](int64_t, int64_t i) { return special[i]; });
    b.set([&](int64_t, int64_t i) { return special[(i + turn) % 16]; });
    c.set([&](int64_t, int64_t i) { return special[(i + 5 * turn + 3) % 16]; });
    on_every_isa("turn " + std::to_string(turn), [&] {
      Matrix y(1, 16 * 12);
      HWY_DYNAMIC_DISPATCH(Each)(a.data(), b.data(), c.data(), y.data());
      std::vector<float> v = y.values();
      for (float& x : v)
        if (std::isnan(x)) x = NAN;  // which NaN is not promised
      return v;
    });
  }
}

}  // namespace
}  // namespace bary::kernel
#endif
