// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021): pairs of channels of queries and keys turned by the position, each pair at its own
// frequency theta^(-2i/D), so that a score depends on the distance alone. A trained model is read past its window by
// slower frequencies:
//   linear: f_i / s (position interpolation, Chen et al. 2023)
//   ntk: theta s^(D/(D-2)) in place of theta; the fastest pair keeps its pace, the slowest turns s times slower
//   yarn: f_i (1-r_i) + f_i / s r_i, and q and k each times 0.1 ln s + 1 (Peng et al. 2023, "NTK by parts"), with
//     r_i = clamp((i - lo) / (hi - lo), 0, 1), lo = floor dim(32), hi = ceil dim(1), and dim(turns) = D ln(original /
//     (2 pi turns)) / (2 ln theta): the pair that turns so often in the old window
#pragma once
#include <vector>

#include "bary/tensor/tensor.h"

namespace bary {

enum class RopeScaling { none, linear, ntk, yarn };

struct RotaryOptions {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;     // s: how much longer the window becomes; at least 1
  int64_t original = 0;  // positions the frequencies were trained at; yarn needs it
};

// Error: D odd or below 1, a factor below 1 or not finite, ntk with D below 4, yarn without `original` or with theta
// not above 1.
void check_rotary(int64_t D, const RotaryOptions& o);
// Radians a position, D/2 of them.
std::vector<double> rotary_frequencies(int64_t D, const RotaryOptions& o);
// What q and k are each multiplied by: 1 but for yarn.
double rotary_temperature(const RotaryOptions& o);

// cos and sin of t f_i, times the temperature, for the rows of a call
struct RotaryTable {
  RotaryTable(int64_t n, int64_t width, const RotaryOptions& o);
  RotaryTable(int64_t n, int64_t width, double theta) : RotaryTable(n, width, RotaryOptions{.theta = theta}) {}
  int64_t positions = 0, D = 0;
  Tensor cosines, sines;  // (positions, D/2), rows without padding
};

}  // namespace bary
