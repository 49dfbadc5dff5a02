// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/kernels.h"

#include <gtest/gtest.h>

#include "bary/base/parallel.h"

namespace bary {
namespace {

TEST(KernelBench, EveryFigureHasItsLimit) {
  const int before = threads();
  set_threads(1);
  const auto figures = measure_kernels(0.001);
  set_threads(before);
  EXPECT_GE(figures.size(), 16u);
  for (const KernelFigure& f : figures) {
    EXPECT_GT(f.figure, 0) << f.name;
    EXPECT_EQ(f.most > 0, f.limit != Limit::none) << f.name;
  }
}

}  // namespace
}  // namespace bary
