// SPDX-License-Identifier: Apache-2.0
// The kernels one by one, on the caller's thread, at the shapes of the chapter's block and of GPT-2 small.
#pragma once
#include <string>
#include <vector>

namespace bary {

enum class Limit {
  tile,    // figure in GFLOP/s, a share of the register tile's
  memory,  // in GB/s, a share of a = b + s c
  none,    // in 10^9 elements a second
};
struct KernelFigure {
  std::string name, shape;
  Limit limit;
  double figure = 0;  // median of the runs
  double most = 0;    // the limit, measured just before and after; 0 without one
};
// Each for about `seconds`.
std::vector<KernelFigure> measure_kernels(double seconds);

}  // namespace bary
