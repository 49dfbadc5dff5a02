// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/sample.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bary::lab {
namespace {

TEST(Sample, OfNothingHasNoMeanAndNoText) {
  EXPECT_TRUE(std::isnan(Sample{}.mean()));
  EXPECT_EQ(Sample{}.text(), "");
}

TEST(Sample, OneValueHasNoSpread) {
  EXPECT_EQ(Sample{{38.07}}.text(), "38.07");
  EXPECT_EQ(Sample{{38.07}}.deviation(), 0);
}

TEST(Sample, DeviationIsOfASampleNotOfAPopulation) {
  const Sample s{{1, 2, 3, 4}};
  EXPECT_DOUBLE_EQ(s.mean(), 2.5);
  EXPECT_DOUBLE_EQ(s.deviation(), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(s.standard_error(), std::sqrt(5.0 / 3) / 2);
}

TEST(Sample, DifferencesPairTheSeeds) {
  const Sample d = Sample{{5, 7, 9}} - Sample{{1, 2}};
  EXPECT_EQ(d.values, (std::vector<double>{4, 5}));
}

TEST(Verdict, IsOpenWithoutValues) { EXPECT_EQ(within({}, 0, 1), Verdict::undecided); }
TEST(Verdict, TheBoundsThemselvesHold) {
  EXPECT_EQ(within({{1}}, 1, 2), Verdict::holds);
  EXPECT_EQ(within({{2}}, 1, 2), Verdict::holds);
}
TEST(Verdict, OneValueOutsideFails) { EXPECT_EQ(within({{2.01}}, 1, 2), Verdict::fails); }
TEST(Verdict, AWideSpreadCannotSayNo) {
  EXPECT_EQ(within({{1.5, 3.1}}, 1, 2), Verdict::undecided);  // 2.3 +- 0.8
  EXPECT_EQ(within({{2.29, 2.31}}, 1, 2), Verdict::fails);    // 2.30 +- 0.01
}
TEST(Verdict, NotANumberFails) { EXPECT_EQ(within({{std::nan("")}}, 0, 1), Verdict::fails); }
TEST(Verdict, BothNeedBoth) {
  EXPECT_EQ(both(Verdict::holds, Verdict::holds), Verdict::holds);
  EXPECT_EQ(both(Verdict::holds, Verdict::undecided), Verdict::undecided);
  EXPECT_EQ(both(Verdict::undecided, Verdict::fails), Verdict::fails);
}

TEST(Rows, SeedsAreCollectedInOrderUntilOneIsMissing) {
  const Rows rows({{"a/1", {{"v", 1}}}, {"a/2", {{"v", 2}}}, {"a/4", {{"v", 4}}}, {"ab/1", {{"v", 9}}}});
  EXPECT_EQ(rows.sample("a", "v").values, (std::vector<double>{1, 2}));
}

TEST(Rows, WhatIsNotThereIsNotANumber) {
  const Rows rows({{"a", {{"v", nullptr}, {"list", {1, nullptr}}}}});
  EXPECT_TRUE(std::isnan(rows.number("a", "v")));
  EXPECT_TRUE(std::isnan(rows.number("b", "v")));
  EXPECT_TRUE(rows.numbers("a", "v").empty());
  ASSERT_EQ(rows.numbers("a", "list").size(), 2u);
  EXPECT_TRUE(std::isnan(rows.numbers("a", "list")[1]));
}

}  // namespace
}  // namespace bary::lab
