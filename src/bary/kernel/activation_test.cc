// SPDX-License-Identifier: Apache-2.0
// Activations and their derivatives against double over the range that matters, and at its ends.
#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"
#include "bary/kernel/rows.h"

namespace bary::kernel {
namespace {

constexpr Activation kAll[] = {Activation::none, Activation::gelu, Activation::gelu_tanh,
                               Activation::relu, Activation::silu, Activation::tanh};
const char* name(Activation a) {
  const char* names[] = {"none", "gelu", "gelu_tanh", "relu", "silu", "tanh"};
  return names[static_cast<int>(a)];
}

// values, then derivatives
std::vector<float> activated(Activation act, const Matrix& x, bool derivative = true) {
  Matrix y(x.rows(), x.n(), x.ld()), d(x.rows(), x.n(), x.ld() + 1);
  y.set([&](int64_t r, int64_t c) { return x(r, c); });
  activate_rows(act, y.rows(), y.n(), y.data(), y.ld(), derivative ? d.data() : nullptr, d.ld());
  EXPECT_TRUE(y.gaps_untouched() && d.gaps_untouched());
  std::vector<float> out = y.values();
  if (derivative) append(out, d.values());
  return out;
}

// What rounding allows at x, in units of eps: the errors of u in e^-u grow with u, and everything is a product with
// that.
struct Allowed {
  double value, slope;
};
Allowed allowed(Activation act, double x) {
  const auto r = reference::activate(act, x);
  const double tiny = 1e-36 / kEps;  // where the exponential has run out of floats
  switch (act) {
    case Activation::none:
    case Activation::relu:
      return {0, 0};
    case Activation::gelu: {
      double density = std::exp(-x * x / 2) * 0.4, p = std::fabs(r.value / (x == 0 ? 1 : x));
      return {(4 + x * x) * std::fabs(r.value) + tiny, (4 + x * x) * (p + std::fabs(x) * density) + 1 + tiny};
    }
    case Activation::gelu_tanh: {
      double c = 2 * 0.7978845608028654, u = c * (x + 0.044715 * x * x * x), du = c * (1 + 0.134145 * x * x);
      double s = 1 / (1 + std::exp(-u)), other = 1 / (1 + std::exp(u));
      double relative = 4 + 4 * std::fabs(u) * other;
      return {relative * std::fabs(r.value) + tiny,
              (relative + 4) * (s + std::fabs(x) * s * du * other) + tiny * std::fabs(x) * du};
    }
    case Activation::silu: {
      double s = 1 / (1 + std::exp(-x)), other = 1 / (1 + std::exp(x));
      return {4 * std::fabs(r.value) + tiny, 6 * (s + std::fabs(x) * s * other) + tiny};
    }
    case Activation::tanh:  // tanh-inl.h states 3; the slope is 1 - t t
      return {4 * std::fabs(r.value) + tiny, 2 + 8 * r.value * r.value};
  }
  return {0, 0};
}

TEST(Activation, AgreesWithDouble) {
  std::vector<float> points;
  for (double v = -20; v < 20; v += 0.003) points.push_back(static_cast<float>(v));
  for (double v = 1e-30; v < 1e6; v *= 3) {
    points.push_back(static_cast<float>(v));
    points.push_back(static_cast<float>(-v));
  }
  points.push_back(0);
  points.push_back(-0.0f);
  const int64_t n = static_cast<int64_t>(points.size());
  Matrix x(1, n);
  x.set([&](int64_t, int64_t c) { return points[static_cast<size_t>(c)]; });
  for (Activation act : kAll) {
    std::vector<float> got = on_every_isa(name(act), [&] { return activated(act, x); });
    for (size_t i = 0; i < points.size(); ++i) {
      const double v = points[i];
      const auto want = reference::activate(act, v);
      const Allowed a = allowed(act, v);
      const float value = got[i], slope = got[i + points.size()];
      ASSERT_TRUE(std::fabs(value - want.value) <= kEps * a.value)
          << name(act) << "(" << v << ") = " << value << ", " << want.value;
      ASSERT_TRUE(std::fabs(slope - want.slope) <= kEps * a.slope)
          << name(act) << "'(" << v << ") = " << slope << ", " << want.slope;
    }
  }
}

TEST(Activation, EndsOfTheLine) {
  const float inf = HUGE_VALF;
  Matrix x(1, 5);
  const float points[] = {inf, -inf, NAN, 3e38f, -3e38f};
  x.set([&](int64_t, int64_t c) { return points[c]; });
  for (Activation act : kAll) {
    std::vector<float> got = on_every_isa(name(act), [&] {
      std::vector<float> v = activated(act, x);
      for (float& f : v)
        if (std::isnan(f)) f = NAN;
      return v;
    });
    EXPECT_TRUE(std::isnan(got[2])) << name(act);  // a NaN never turns into a number
    const bool bounded = act == Activation::tanh;
    EXPECT_EQ(got[0], bounded ? 1 : inf) << name(act);
    EXPECT_EQ(got[3], bounded ? 1 : 3e38f) << name(act);
    EXPECT_EQ(got[4], bounded ? -1 : act == Activation::none ? -3e38f : 0.0f) << name(act);
  }
}

TEST(Activation, EverySizeWithAndWithoutDerivative) {
  for (int64_t n : kSizes) {
    Matrix x = random_matrix(3, n, n + 2, 1, 2);
    for (Activation act : kAll) {
      std::vector<float> both = on_every_isa(name(act), [&] { return activated(act, x); });
      std::vector<float> alone = on_every_isa(name(act), [&] { return activated(act, x, false); });
      both.resize(alone.size());
      expect_same_bits(alone, both, name(act));
    }
  }
}

}  // namespace
}  // namespace bary::kernel
