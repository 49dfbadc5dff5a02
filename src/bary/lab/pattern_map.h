// SPDX-License-Identifier: Apache-2.0
// Who looks where, as a picture: the first positions of an attention pattern, mean over its heads.
#pragma once
#include <string>
#include <vector>

#include "bary/lab/experiment.h"
#include "bary/tensor/tensor.h"

namespace bary::lab {

inline constexpr int64_t kMapped = 16;  // positions of a map

// Of a pattern (1,H,T,T) the weight of query t on key j, mean over heads
double head_mean(const Tensor& pattern, int64_t t, int64_t j);
// The first kMapped queries and keys, row by row; T is at least kMapped
std::vector<double> corner(const Tensor& pattern);
HeatMap position_map(std::string title, std::vector<double> corner);

}  // namespace bary::lab
