// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/pattern_map.h"

namespace bary::lab {

double head_mean(const Tensor& pattern, int64_t t, int64_t j) {
  const int64_t H = pattern.dim(1), T = pattern.dim(2);
  double sum = 0;
  for (int64_t h = 0; h < H; ++h) sum += static_cast<double>(pattern.row(h * T + t)[j]);
  return sum / static_cast<double>(H);
}

std::vector<double> corner(const Tensor& pattern) {
  std::vector<double> map;
  for (int64_t t = 0; t < kMapped; ++t)
    for (int64_t j = 0; j < kMapped; ++j) map.push_back(head_mean(pattern, t, j));
  return map;
}

HeatMap position_map(std::string title, std::vector<double> corner) {
  HeatMap map{std::move(title), "position", "looks at", {}, {}, std::move(corner)};
  for (int64_t i = 1; i <= kMapped; ++i) map.row_labels.push_back(std::to_string(i));
  map.column_labels = map.row_labels;
  return map;
}

}  // namespace bary::lab
