// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/dropout.h"

#include "bary/kernel/checks_test.h"

namespace bary::kernel {
namespace {

DropoutSite site(float p, uint64_t step = 3, uint32_t layer = 1) {
  DropoutSite s;
  s.p = p;
  s.seed = 42;
  s.step = step;
  s.layer = layer;
  return s;
}

std::vector<float> mask(uint32_t key, int64_t n, float p, uint32_t first = 0) {
  std::vector<float> ones(static_cast<size_t>(n), 1.0f), y(ones.size());
  dropout_row(ones.data(), y.data(), n, key, first, p);
  return y;
}

TEST(Dropout, ShareOfZerosAndScale) {
  for (float p : {0.0f, 0.1f, 0.5f, 0.9f}) {
    int64_t zeros = 0, rows = 200, n = 500;
    for (int64_t r = 0; r < rows; ++r) {
      for (float y : mask(dropout_row_key(site(p), 0, 0, static_cast<uint64_t>(r)), n, p)) {
        EXPECT_TRUE(y == 0 || y == 1.0f / (1.0f - p));
        zeros += y == 0;
      }
    }
    const double total = static_cast<double>(rows * n), q = static_cast<double>(p);
    EXPECT_TRUE(std::fabs(static_cast<double>(zeros) / total - q) <= 5 * std::sqrt(q * (1 - q) / total)) << p;
  }
}

TEST(Dropout, WhereItStandsDecidesAndNothingElse) {
  const uint32_t key = dropout_row_key(site(0.5f), 7, 1, 9);
  std::vector<float> whole = mask(key, 100, 0.5f), tail = mask(key, 60, 0.5f, 40);
  expect_same_bits(tail, {whole.begin() + 40, whole.end()}, "columns 40 on");
  std::vector<float> x(100, 2.0f);
  dropout_row(x.data(), x.data(), 100, key, 0, 0.5f);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(x[i], 2 * whole[i]);
}

TEST(Dropout, EveryInstructionSetKeepsTheSame) {
  for (int64_t n : kSizes) {
    std::vector<float> want;
    for (int64_t c = 0; c < n; ++c)
      want.push_back(dropout_keeps(77, 5 + static_cast<uint32_t>(c), dropout_threshold(0.3f)) ? 1.0f / 0.7f : 0.0f);
    expect_same_bits(on_every_isa("mask", [&] { return mask(77, n, 0.3f, 5); }), want, std::to_string(n));
  }
}

// Every part of the name matters: two masks that differ in one of them agree on half the places.
TEST(Dropout, EveryPartOfTheNameGivesAnotherMask) {
  std::vector<uint32_t> keys{
      dropout_row_key(site(0.5f), 7, 1, 9),          dropout_row_key(site(0.5f), 8, 1, 9),
      dropout_row_key(site(0.5f), 7, 2, 9),          dropout_row_key(site(0.5f), 7, 1, 10),
      dropout_row_key(site(0.5f, 4), 7, 1, 9),       dropout_row_key(site(0.5f, 3, 2), 7, 1, 9),
      dropout_row_key(site(0.5f), 7ull << 32, 1, 9), dropout_row_key(site(0.5f, 3ull << 32), 7, 1, 9)};
  DropoutSite other = site(0.5f);
  other.site = 5;
  keys.push_back(dropout_row_key(other, 7, 1, 9));
  other = site(0.5f);
  other.seed = 42ull << 32;
  keys.push_back(dropout_row_key(other, 7, 1, 9));
  const int64_t n = 4000;
  for (size_t a = 0; a < keys.size(); ++a) {
    std::vector<float> one = mask(keys[a], n, 0.5f);
    for (size_t b = 0; b < a; ++b) {
      std::vector<float> two = mask(keys[b], n, 0.5f);
      int64_t same = 0;
      for (size_t i = 0; i < one.size(); ++i) same += one[i] == two[i];
      EXPECT_NEAR(static_cast<double>(same), n / 2.0, 5 * std::sqrt(n) / 2) << a << " " << b;
    }
    int64_t same = 0;  // as its neighbour in the row
    for (size_t i = 1; i < one.size(); ++i) same += one[i] == one[i - 1];
    EXPECT_NEAR(static_cast<double>(same), n / 2.0, 5 * std::sqrt(n) / 2) << a;
  }
}

}  // namespace
}  // namespace bary::kernel
