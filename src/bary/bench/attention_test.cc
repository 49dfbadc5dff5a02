// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/attention.h"

#include <gtest/gtest.h>

namespace bary {
namespace {

TEST(AttentionBench, CountsTheVisiblePairs) {
  // seven products over the 6 pairs of 3 positions, 2 heads of 5: a multiply and an add each
  EXPECT_EQ(AttentionBench(2, 5, 3, AttentionPath::tiled).flops(), 7 * 2 * 6 * 10);
}

TEST(AttentionBench, BothPathsRunAgainAndAgain) {
  for (AttentionPath path : {AttentionPath::tiled, AttentionPath::stored}) {
    AttentionBench bench(2, 8, 70, path);
    for (int i = 0; i < 3; ++i) EXPECT_GT(bench.run_one(), 0);
  }
}

}  // namespace
}  // namespace bary
