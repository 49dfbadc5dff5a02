// SPDX-License-Identifier: Apache-2.0
#include "bary/base/portable_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bary::portable {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// largest |got - want| / scale(want) over a sweep; a NaN anywhere makes it NaN, which fails every bound below
template <class Got, class Want>
double worst(double lo, double hi, int n, Got got, Want want, bool relative) {
  double w = 0;
  for (int i = 0; i <= n; ++i) {
    double x = lo + (hi - lo) * i / n, g = got(x);
    long double t = want(static_cast<long double>(x));
    double e = static_cast<double>(std::fabs(static_cast<long double>(g) - t) / (relative ? std::fabs(t) : 1.0L));
    if (!(e <= w)) w = e;
  }
  return w;
}

TEST(PortableMath, FollowsTheTrueFunctions) {
  EXPECT_LE(worst(
                -700, 700, 100003, exp, [](long double x) { return std::exp(x); }, true),
            2 * kEps);
  auto true_log = [](long double x) { return std::log(x); };
  EXPECT_LE(worst(0.5, 2, 100003, log, true_log, false), kEps);  // absolute where the logarithm crosses zero
  EXPECT_LE(worst(1e-3, 0.5, 100003, log, true_log, true), 2 * kEps);
  EXPECT_LE(worst(2, 1e6, 100003, log, true_log, true), 2 * kEps);
  EXPECT_LE(worst(
                -1000, 1000, 100003, sin, [](long double x) { return std::sin(x); }, false),
            2 * kEps);
  EXPECT_LE(worst(
                -1000, 1000, 100003, cos, [](long double x) { return std::cos(x); }, false),
            2 * kEps);
  const long double two_pi = 6.283185307179586476925286766559L;
  EXPECT_LE(worst(
                -2, 2, 100003, sin_turns, [=](long double x) { return std::sin(two_pi * x); }, false),
            2 * kEps);
  EXPECT_LE(worst(
                -2, 2, 100003, cos_turns, [=](long double x) { return std::cos(two_pi * x); }, false),
            2 * kEps);
  EXPECT_LE(worst(
                -2, 2, 1003, [](double y) { return pow(10000, y); },
                [](long double y) { return std::pow(10000.0L, y); }, true),
            20 * kEps);
}

TEST(PortableMath, Edges) {
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-1000), 0);
  EXPECT_TRUE(std::isinf(exp(710)));
  EXPECT_TRUE(std::isnan(exp(NAN)));
  EXPECT_EQ(log(1), 0);
  EXPECT_TRUE(std::isinf(log(0)));
  EXPECT_TRUE(std::isnan(log(-1)));
  EXPECT_EQ(sin(0), 0);
  EXPECT_EQ(cos(0), 1);
  EXPECT_EQ(pow(2, 10), 1024);
}

}  // namespace
}  // namespace bary::portable
