// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"

namespace bary {

void check_rotary(int64_t D, const RotaryOptions& o) {
  BARY_CHECK(D >= 1 && D % 2 == 0,
             "rotary positions: the width of a head is {}, it must be even; choose another n_head or d_head", D);
  BARY_CHECK(o.factor >= 1 && std::isfinite(o.factor),
             "rotary positions: a factor of {}; it says how much longer the window becomes, give 1 or more", o.factor);
  BARY_CHECK(o.scaling != RopeScaling::ntk || D >= 4,
             "rotary positions: ntk scaling takes the root of order (D-2)/D, and the width of a head is {}; use linear "
             "scaling or heads of at least 4",
             D);
  BARY_CHECK(
      o.scaling != RopeScaling::yarn || (o.original >= 1 && o.theta > 1),
      "rotary positions: yarn scaling compares theta {} with the window trained at, {}; give a theta above 1 and "
      "a window of at least 1",
      o.theta, o.original);
}

namespace {

// The share of pair i that is slowed down: none of those that turn often in the old window, all of those that never
// finish a turn there.
struct Ramp {
  double low, high;
  Ramp(int64_t D, const RotaryOptions& o) {
    const double last = static_cast<double>(D - 1);
    auto pair_turning = [&](double turns) {
      return static_cast<double>(D) * portable::log(static_cast<double>(o.original) / (2 * std::numbers::pi * turns)) /
             (2 * portable::log(o.theta));
    };
    low = std::max(std::floor(pair_turning(32)), 0.0);
    high = std::min(std::ceil(pair_turning(1)), last);
    if (high <= low) high = low + 0.001;  // a step instead of a ramp
  }
  double operator()(int64_t i) const { return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0); }
};

}  // namespace

std::vector<double> rotary_frequencies(int64_t D, const RotaryOptions& o) {
  check_rotary(D, o);
  const double width = static_cast<double>(D);
  double theta = o.theta;
  if (o.scaling == RopeScaling::ntk) theta *= portable::pow(o.factor, width / (width - 2));
  std::vector<double> f;
  for (int64_t i = 0; i < D / 2; ++i) f.push_back(portable::pow(theta, -2.0 * static_cast<double>(i) / width));
  if (o.scaling == RopeScaling::linear) {
    for (double& v : f) v /= o.factor;
  } else if (o.scaling == RopeScaling::yarn) {
    const Ramp slowed(D, o);
    for (int64_t i = 0; i < D / 2; ++i) {
      double& v = f[static_cast<size_t>(i)];
      v = v * (1 - slowed(i)) + v / o.factor * slowed(i);
    }
  }
  return f;
}

double rotary_temperature(const RotaryOptions& o) {
  return o.scaling == RopeScaling::yarn ? 0.1 * portable::log(o.factor) + 1 : 1;
}

RotaryTable::RotaryTable(int64_t n, int64_t width, const RotaryOptions& o) : positions(n), D(width) {
  const std::vector<double> frequencies = rotary_frequencies(D, o);
  const double temperature = rotary_temperature(o);
  const int64_t half = D / 2;
  cosines = Tensor(Shape{positions * half});
  sines = Tensor(Shape{positions * half});
  for (int64_t i = 0; i < half; ++i) {
    for (int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * frequencies[static_cast<size_t>(i)];
      cosines.data()[t * half + i] = static_cast<float>(temperature * portable::cos(angle));
      sines.data()[t * half + i] = static_cast<float>(temperature * portable::sin(angle));
    }
  }
}

}  // namespace bary
