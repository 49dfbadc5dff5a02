// SPDX-License-Identifier: Apache-2.0
#include "bary/base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace bary {
namespace {

TEST(EditDistance, EdgesAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("warmpu", "warmup"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // optimal alignment, not the unrestricted distance (2)
  EXPECT_EQ(edit_distance(std::string(1000, 'x'), "abc"), 1000);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"n_layer",       "n_head",         "block_size",
                                          "learning_rate", "warmup_iters",   "weight_decay",
                                          "eval_iters",    "tie_embeddings", "seed"};
  EXPECT_EQ(nearest("warmpu", names), "warmup_iters");
  EXPECT_EQ(nearest("warmup", names), "warmup_iters");
  EXPECT_EQ(nearest("warmup_iter", names), "warmup_iters");
  EXPECT_EQ(nearest("lr", names), "learning_rate");
  EXPECT_EQ(nearest("heads", names), "n_head");
  EXPECT_EQ(nearest("layers", names), "n_layer");
  EXPECT_EQ(nearest("decay", names), "weight_decay");
  EXPECT_EQ(nearest("sede", names), "seed");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> names = {"seed", "n_layer"};
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest("zzzzzz", names), std::nullopt);
  EXPECT_EQ(nearest("q", names), std::nullopt);
  EXPECT_EQ(nearest("seed", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), std::nullopt);
}

TEST(Nearest, TheEarlierOfTwoEquals) {
  const std::vector<std::string> names = {"abcx", "abcy"};
  EXPECT_EQ(nearest("abcz", names), "abcx");
}

}  // namespace
}  // namespace bary
