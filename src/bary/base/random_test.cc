// SPDX-License-Identifier: Apache-2.0
#include "bary/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace bary {
namespace {

// Known answers of Philox4x32-10 from the authors' Random123 distribution.
TEST(Philox, KnownAnswers) {
  auto zero = philox4x32({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zero, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  auto ones = philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u});
  EXPECT_EQ(ones, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomStream, IsNamedNotAdvanced) {
  RandomStream a(7, Purpose::batch, 3, 5), b(7, Purpose::batch, 3, 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  std::set<uint32_t> first;
  for (uint64_t step = 0; step < 50; ++step)
    for (uint64_t index = 0; index < 50; ++index) first.insert(RandomStream(7, Purpose::batch, step, index).next());
  EXPECT_GT(first.size(), 2490u);  // 2500 draws from 2^32 collide with probability below 1e-3 each
}

TEST(RandomStream, NormalMomentsAndBounds) {
  RandomStream r(1, Purpose::test);
  const int n = 200000;
  double sum = 0, sum2 = 0, sum4 = 0, u = 0;
  for (int i = 0; i < n; ++i) {
    double x = r.normal();
    sum += x, sum2 += x * x, sum4 += x * x * x * x;
    double y = r.uniform();
    ASSERT_TRUE(y >= 0 && y < 1);
    u += y;
    ASSERT_LT(r.below(7), 7u);
  }
  double s = std::sqrt(1.0 / n);  // five standard errors of each moment
  EXPECT_LE(std::abs(sum / n), 5 * s);
  EXPECT_LE(std::abs(sum2 / n - 1), 5 * s * std::sqrt(2.0));
  EXPECT_LE(std::abs(sum4 / n - 3), 5 * s * std::sqrt(96.0));
  EXPECT_LE(std::abs(u / n - 0.5), 5 * s * std::sqrt(1.0 / 12));
}

}  // namespace
}  // namespace bary
