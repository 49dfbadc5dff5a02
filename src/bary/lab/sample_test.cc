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

TEST(Sample, ReachIsStudents) {
  EXPECT_EQ(Sample{{38.07}}.reach(), 0);
  const double one = std::sqrt(0.5) / std::sqrt(2.0);  // the standard error of 0, 1
  EXPECT_DOUBLE_EQ((Sample{{0, 1}}.reach()), 12.706 * one);
  Sample many;
  for (int i = 0; i < 11; ++i) many.values.push_back(i % 2);
  EXPECT_NEAR(many.reach() / many.standard_error(), 2.228, 0.004);  // ten degrees of freedom
  for (int i = 0; i < 1000; ++i) many.values.push_back(i % 2);
  EXPECT_NEAR(many.reach() / many.standard_error(), 1.962, 0.001);
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
  EXPECT_EQ(within({{1.5, 3.1}}, 1, 2), Verdict::undecided);       // 2.3 +- 12.7 * 0.8
  EXPECT_EQ(within({{2.29, 2.31}}, 1, 2), Verdict::fails);         // 2.30 +- 12.7 * 0.01
  EXPECT_EQ(within({{1.9, 2.1, 2.3}}, 1, 2), Verdict::undecided);  // 2.1 +- 4.3 * 0.115
  EXPECT_EQ(within({{2.09, 2.10, 2.11}}, 1, 2), Verdict::fails);   // 2.1 +- 4.3 * 0.006
}
TEST(Verdict, LargerIsSaidOnlyBeyondTheSpread) {
  EXPECT_EQ(larger({{2, 3}}, {{1, 2}}), Verdict::holds);
  EXPECT_EQ(larger({{1, 2}}, {{2, 3}}), Verdict::fails);
  EXPECT_EQ(larger({{1.1, 0.9}}, {{1, 0.95}}), Verdict::undecided);  // 0.025 +- 0.075
  EXPECT_EQ(larger({{0.9, 1.1}}, {{1, 1.05}}), Verdict::undecided);
}
TEST(Verdict, OneSeedSaysNothingOfWhichIsLarger) {
  EXPECT_EQ(larger({{2}}, {{1}}), Verdict::undecided);
  EXPECT_EQ(larger({{1}}, {{2}}), Verdict::undecided);
}
TEST(Verdict, LargerIsOpenWithoutAPairAndFailsOnNotANumber) {
  EXPECT_EQ(larger({}, {{1}}), Verdict::undecided);
  EXPECT_EQ(larger({{1}}, {{std::nan("")}}), Verdict::fails);
}
TEST(Verdict, NotANumberFails) { EXPECT_EQ(within({{std::nan("")}}, 0, 1), Verdict::fails); }
TEST(Verdict, BothNeedBoth) {
  EXPECT_EQ(both(Verdict::holds, Verdict::holds), Verdict::holds);
  EXPECT_EQ(both(Verdict::holds, Verdict::undecided), Verdict::undecided);
  EXPECT_EQ(both(Verdict::undecided, Verdict::fails), Verdict::fails);
}

TEST(Sample, NotANumberIsTheGreatestAndTheLeast) {
  const double nan = std::nan("");
  EXPECT_EQ(greater_of(1, 2), 2);
  EXPECT_EQ(lesser_of(1, 2), 1);
  for (double (*of)(double, double) : {&greater_of, &lesser_of}) {
    EXPECT_TRUE(std::isnan(of(1, nan)));
    EXPECT_TRUE(std::isnan(of(nan, 1)));
  }
  for (double (*of)(const std::vector<double>&) : {&greatest, &least}) {
    EXPECT_TRUE(std::isnan(of({})));
    EXPECT_TRUE(std::isnan(of({1, nan, 2})));
    EXPECT_EQ(of({3}), 3);
  }
  EXPECT_EQ(greatest({1, 3, 2}), 3);
  EXPECT_EQ(least({2, 1, 3}), 1);
}
TEST(Rows, SeedsAreCollectedInOrderUntilOneIsMissing) {
  const Rows rows({{"a/1", {{"v", 1}}}, {"a/2", {{"v", 2}}}, {"a/4", {{"v", 4}}}, {"ab/1", {{"v", 9}}}});
  EXPECT_EQ(rows.sample("a", "v").values, (std::vector<double>{1, 2}));
}

TEST(Rows, AStoppedOneIsRunAndHasNoFigures) {
  const Rows rows({{"a/1", {{"v", 1}}}, {"a/2", {{"stopped", "why"}}}, {"a/3", {{"v", 3}}}, {"a/5", {{"v", 5}}}});
  EXPECT_EQ(rows.keys("a"), (std::vector<std::string>{"a/1", "a/2", "a/3"}));
  EXPECT_TRUE(rows.run("a/2") && rows.stopped("a/2") && !rows.has("a/2"));
  EXPECT_FALSE(rows.run("a/4") || rows.stopped("a/4") || rows.has("a/4"));
  EXPECT_EQ(rows.sample("a", "v").n(), 3);
  EXPECT_EQ(within(rows.sample("a", "v"), 0, 10), Verdict::fails);
  EXPECT_EQ(rows.count("a/1", "v"), "1");
  EXPECT_EQ(rows.count("a/2", "v"), "");
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
