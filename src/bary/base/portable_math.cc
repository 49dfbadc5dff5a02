// SPDX-License-Identifier: Apache-2.0
#include "bary/base/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace bary::portable {
namespace {

constexpr double kLn2Hi = 6.93147180369123816490e-01, kLn2Lo = 1.90821492927058770002e-10;  // hi has 20 trailing zeros
constexpr double kTwoPi = 6.28318530717958647693;

double scale_by_power_of_two(double x, int n) {  // x 2^n, in two steps so that a denormal result is rounded once
  auto power = [](int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); };
  if (n > 1000) return x * power(1000) * power(n - 1000);
  if (n < -1000) return x * power(n + 60) * power(-60);
  return x * power(n);
}

// sin and cos of an angle in [-pi/4, pi/4] by Taylor; the next term is below 2^-60
double sin_small(double a) {
  double z = a * a, s = 0;
  constexpr double c[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
                          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
  for (double k : c) s = s * z + k;
  return a + a * (z * s);
}
double cos_small(double a) {
  double z = a * a, s = 0;
  constexpr double c[] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
                          1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0};
  for (double k : c) s = s * z + k;
  return 1.0 - 0.5 * z + z * z * s;
}

// quadrant and remainder of an angle given in turns
struct Octant {
  int quadrant;
  double angle;
};
Octant reduce(double turns) {
  double quarter = std::nearbyint(turns * 4.0);
  double rest = turns - quarter * 0.25;  // exact: both are multiples of the same power of two
  return {static_cast<int>(static_cast<int64_t>(quarter) & 3), rest * kTwoPi};
}

}  // namespace

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  double n = std::nearbyint(x * 1.44269504088896340736);
  double r = (x - n * kLn2Hi) - n * kLn2Lo;  // |r| <= ln(2)/2
  double s = 0;
  constexpr double c[] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                          1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                          1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
  for (double k : c) s = s * r + k;
  return scale_by_power_of_two(1.0 + (r + r * r * s), static_cast<int>(n));
}

double log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int e = 0;
  double m = std::frexp(x, &e);  // exact; m in [1/2, 1)
  if (m < 0.70710678118654752440) {
    m *= 2;
    --e;
  }
  double f = m - 1.0, s = f / (2.0 + f), z = s * s, t = 0;  // log m = 2 atanh(s) = f - s (f - 2 z t), |s| <= 0.1716
  for (int k = 25; k >= 3; k -= 2) t = t * z + 1.0 / k;
  double log_m = f - s * (f - 2.0 * z * t);
  return e * kLn2Hi + (log_m + e * kLn2Lo);
}

double sin_turns(double turns) {
  auto [q, a] = reduce(turns);
  switch (q) {
    case 0:
      return sin_small(a);
    case 1:
      return cos_small(a);
    case 2:
      return -sin_small(a);
    default:
      return -cos_small(a);
  }
}
double cos_turns(double turns) {
  auto [q, a] = reduce(turns);
  switch (q) {
    case 0:
      return cos_small(a);
    case 1:
      return -sin_small(a);
    case 2:
      return -cos_small(a);
    default:
      return sin_small(a);
  }
}

// 2 pi in three parts, the first two short enough that their product with the number of quarter turns is exact
static Octant reduce_radians(double x) {
  constexpr double kP1 = 1.57079632673412561417e+00, kP2 = 6.07710050630396597660e-11, kP3 = 2.02226624879595063154e-21;
  double n = std::nearbyint(x * 0.63661977236758134308);
  double r = ((x - n * kP1) - n * kP2) - n * kP3;
  return {static_cast<int>(static_cast<int64_t>(n) & 3), r};
}
double sin(double x) {
  auto [q, a] = reduce_radians(x);
  double s = (q & 1) ? cos_small(a) : sin_small(a);
  return (q & 2) ? -s : s;
}
double cos(double x) {
  auto [q, a] = reduce_radians(x);
  double c = (q & 1) ? sin_small(a) : cos_small(a);
  return (q == 1 || q == 2) ? -c : c;
}

double pow(double base, double exponent) { return exp(exponent * log(base)); }

}  // namespace bary::portable
