// SPDX-License-Identifier: Apache-2.0
#include "bary/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bary/base/error.h"

namespace bary {
namespace {

using Kind = ScheduleKind;

// The tables give five digits.
void expect_five_digits(double got, double want) { EXPECT_NEAR(got, want, std::abs(want) * 5e-5); }

TEST(Schedule, CosineTable) {
  Schedule s{.kind = Kind::cosine, .learning_rate = 6e-4, .min_lr = 6e-5, .warmup_iters = 2000, .decay_iters = 600000};
  expect_five_digits(learning_rate(s, 0), 2.9985e-7);
  expect_five_digits(learning_rate(s, 1), 5.9970e-7);
  expect_five_digits(learning_rate(s, 1999), 5.9970e-4);
  EXPECT_EQ(learning_rate(s, 2000), 6e-4);
  EXPECT_NEAR(learning_rate(s, 301000), 3.3e-4, 1e-18);
  EXPECT_EQ(learning_rate(s, 600000), 6e-5);
  EXPECT_EQ(learning_rate(s, 600001), 6e-5);
  EXPECT_EQ(learning_rate(s, std::numeric_limits<int64_t>::max()), 6e-5);
}

// 9 warm-up updates here are the table's 10: it counts the first update at the peak as the tenth of the warm-up.
TEST(Schedule, WsdTable) {
  Schedule s{
      .kind = Kind::wsd, .learning_rate = 1e-3, .min_lr = 0, .warmup_iters = 9, .decay_iters = 100, .decay_frac = 0.2};
  EXPECT_NEAR(learning_rate(s, 0), 1e-4, 1e-18);
  EXPECT_EQ(learning_rate(s, 9), 1e-3);
  EXPECT_EQ(learning_rate(s, 79), 1e-3);
  EXPECT_EQ(learning_rate(s, 80), 1e-3);
  EXPECT_NEAR(learning_rate(s, 85), 5e-4, 1e-18);
  expect_five_digits(learning_rate(s, 99), 2.5321e-5);
  EXPECT_EQ(learning_rate(s, 100), 0);
}

TEST(Schedule, LinearConstantAndInverseRoot) {
  Schedule s{.kind = Kind::linear, .learning_rate = 1e-3, .min_lr = 2e-4, .warmup_iters = 10, .decay_iters = 110};
  EXPECT_EQ(learning_rate(s, 10), 1e-3);
  EXPECT_NEAR(learning_rate(s, 60), 6e-4, 1e-18);
  EXPECT_EQ(learning_rate(s, 110), 2e-4);
  s.kind = Kind::constant;
  EXPECT_NEAR(learning_rate(s, 0), 1e-3 / 11, 1e-18);
  EXPECT_EQ(learning_rate(s, 10), 1e-3);
  EXPECT_EQ(learning_rate(s, 1000000), 1e-3);
  s.kind = Kind::inv_sqrt;
  EXPECT_EQ(learning_rate(s, 10), 1e-3);
  EXPECT_NEAR(learning_rate(s, 43), 5e-4, 1e-18);  // (43+1) = 4 (10+1)
  EXPECT_EQ(learning_rate(s, 1000000), 2e-4);
}

TEST(Schedule, NoWarmUpStartsAtThePeakAndTheFirstUpdateMoves) {
  for (Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::wsd, Kind::inv_sqrt}) {
    Schedule s{.kind = kind, .learning_rate = 1e-3, .min_lr = 1e-5, .warmup_iters = 0, .decay_iters = 50};
    EXPECT_EQ(learning_rate(s, 0), 1e-3);
    s.warmup_iters = 1000;
    EXPECT_GT(learning_rate(s, 0), 0);
  }
}

TEST(Schedule, RisesThenNeverRisesAgain) {
  for (Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::wsd, Kind::inv_sqrt}) {
    Schedule s{
        .kind = kind, .learning_rate = 1e-3, .min_lr = 1e-5, .warmup_iters = 7, .decay_iters = 50, .decay_frac = 0.3};
    for (int64_t it = 1; it < 60; ++it) {
      double before = learning_rate(s, it - 1), now = learning_rate(s, it);
      if (it <= 7)
        EXPECT_GT(now, before) << it;
      else
        EXPECT_LE(now, before) << it;
      EXPECT_LE(now, s.learning_rate);
      EXPECT_GE(now, it < 7 ? 0 : s.min_lr);
    }
  }
}

TEST(Schedule, DegenerateLengthsStayFinite) {
  for (Kind kind : {Kind::constant, Kind::cosine, Kind::linear, Kind::wsd, Kind::inv_sqrt}) {
    for (int64_t warmup : {0, 1, 5, 6}) {
      for (int64_t decay : {0, 1, 5, 6}) {
        for (double share : {0.0, 0.1, 1.0}) {
          Schedule s{kind, 1e-3, 1e-4, warmup, decay, share};
          check_schedule(s);
          for (int64_t it = 0; it < 9; ++it) {
            double rate = learning_rate(s, it);
            EXPECT_TRUE(rate > 0 && rate <= 1e-3) << it;
          }
        }
      }
    }
  }
}

TEST(Schedule, Refusals) {
  auto refused = [](Schedule s) {
    try {
      check_schedule(s);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::input;
    }
    return false;
  };
  EXPECT_FALSE(refused({}));
  EXPECT_TRUE(refused({.learning_rate = -1}));
  EXPECT_TRUE(refused({.learning_rate = std::nan("")}));
  EXPECT_TRUE(refused({.learning_rate = 1e-4, .min_lr = 1e-3}));
  EXPECT_FALSE(refused({.kind = Kind::constant, .learning_rate = 1e-4, .min_lr = 1e-3}));
  EXPECT_TRUE(refused({.warmup_iters = -1}));
  EXPECT_TRUE(refused({.decay_iters = -1}));
  EXPECT_TRUE(refused({.decay_frac = 1.5}));
  EXPECT_TRUE(refused({.decay_frac = std::nan("")}));
  EXPECT_THROW(learning_rate({}, -1), Error);
}

}  // namespace
}  // namespace bary
