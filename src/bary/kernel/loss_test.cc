// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/loss.h"

#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {
namespace {

double loss_of(std::vector<float> logits, int32_t target) {
  double loss = -1;
  const int64_t n = static_cast<int64_t>(logits.size());
  cross_entropy_rows(1, n, logits.data(), n, &target, 0, &loss);
  return loss;
}

// Probabilities that underflow, and a maximum far from zero: where taking log of a softmax gives inf or NaN.
TEST(CrossEntropy, FarFromZeroItIsStillTheLoss) {
  KeepIsa keep;
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    EXPECT_EQ(loss_of({0, -200}, 1), 200);
    EXPECT_EQ(loss_of({0, -200}, 0), 0);
    EXPECT_NEAR(loss_of({-20000, -20001}, 0), 0.313262, 1e-6);
    EXPECT_NEAR(loss_of({-20000, -20001}, 1), 1.313262, 1e-6);
    EXPECT_EQ(loss_of({3e38f}, 0), 0);
    EXPECT_NEAR(loss_of(std::vector<float>(1024, 7.5f), 3), 6.931472, 1e-6);
    EXPECT_TRUE(std::isnan(loss_of({NAN, 0, 1}, 1)));
    EXPECT_TRUE(std::isnan(loss_of({0, NAN, 1}, 2)));
    EXPECT_FALSE(std::isfinite(loss_of({0, HUGE_VALF}, 0)));
  }
}

TEST(CrossEntropy, LossAndGradientAgainstDouble) {
  for (int64_t n : {1, 2, 3, 15, 16, 17, 65, 130, 1000}) {
    const int64_t rows = 5;
    Matrix x = random_matrix(rows, n, n + 3, 1, 5);
    std::vector<int32_t> targets;
    for (int64_t r = 0; r < rows; ++r) targets.push_back(r == 2 ? -1 : static_cast<int32_t>(r * 7919 % n));
    std::vector<double> losses(5);
    for (float weight : {0.0f, 1.0f, -0.25f}) {
      std::vector<float> got = on_every_isa("cross_entropy", [&] {
        Matrix y(rows, n, n + 1);
        y.set([&](int64_t r, int64_t c) { return x(r, c); });
        cross_entropy_rows(rows, n, y.data(), y.ld(), targets.data(), weight, losses.data());
        EXPECT_TRUE(y.gaps_untouched());
        std::vector<float> out = weight == 0 ? std::vector<float>() : y.values();
        for (double l : losses) {  // doubles compared whole
          float halves[2];
          std::memcpy(halves, &l, 8);
          out.insert(out.end(), halves, halves + 2);
        }
        return out;
      });
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<double> row;
        for (int64_t c = 0; c < n; ++c) row.push_back(x(r, c));
        const int32_t target = targets[static_cast<size_t>(r)];
        const double loss = losses[static_cast<size_t>(r)];
        if (target < 0) {
          EXPECT_EQ(loss, 0);
        } else {
          double want = reference::cross_entropy(row.data(), n, target);
          EXPECT_TRUE(std::fabs(loss - want) <= 4 * kEps * std::sqrt(n)) << n << " " << loss << " " << want;
        }
        std::vector<double> p = reference::softmax(row.data(), n);
        for (int64_t c = 0; weight != 0 && c < n; ++c) {
          double want =
              target < 0 ? 0 : static_cast<double>(weight) * (p[static_cast<size_t>(c)] - (c == target ? 1.0 : 0.0));
          float g = got[static_cast<size_t>(r * n + c)];
          ASSERT_TRUE(std::fabs(g - want) <= 4 * kEps * std::sqrt(n) * std::fabs(static_cast<double>(weight)))
              << n << " " << r << " " << c;
        }
      }
    }
  }
}

TEST(CrossEntropy, LossesMayBeLeftOut) {
  Matrix x = random_matrix(1, 20, 20, 1), y = random_matrix(1, 20, 20, 1);
  int32_t target = 3;
  double loss;
  cross_entropy_rows(1, 20, x.data(), 20, &target, 1, nullptr);
  cross_entropy_rows(1, 20, y.data(), 20, &target, 1, &loss);
  expect_same_bits(x.values(), y.values(), "gradient");
}

TEST(Softmax, AgainstDoubleInPlaceAndBeside) {
  for (int64_t n : kSizes) {
    Matrix x = random_matrix(3, n, n + 2, 1, 4);
    std::vector<double> want;
    for (int64_t r = 0; r < 3; ++r) {
      std::vector<double> row;
      for (int64_t c = 0; c < n; ++c) row.push_back(x(r, c));
      for (double p : reference::softmax(row.data(), n)) want.push_back(p);
    }
    std::vector<float> beside = on_every_isa("softmax", [&] {
      Matrix y(3, n, n + 1);
      softmax_rows(3, n, x.data(), x.ld(), y.data(), y.ld());
      EXPECT_TRUE(y.gaps_untouched());
      return y.values();
    });
    expect_close(beside, want, 4 * kEps, "softmax");  // every p is at most 1
    softmax_rows(3, n, x.data(), x.ld(), x.data(), x.ld());
    expect_same_bits(x.values(), beside, "in place");
  }
}

TEST(Softmax, MinusInfinityIsExactlyNothing) {
  const float none = -HUGE_VALF;
  Matrix x(1, 40);
  x.set([&](int64_t, int64_t c) { return c % 3 ? none : 1e4f; });
  std::vector<float> y = on_every_isa("softmax", [&] {
    Matrix out(1, 40);
    softmax_rows(1, 40, x.data(), 40, out.data(), 40);
    return out.values();
  });
  for (int c = 0; c < 40; ++c) EXPECT_EQ(y[static_cast<size_t>(c)], c % 3 ? 0.0f : 1.0f / 14.0f) << c;
}

}  // namespace
}  // namespace bary::kernel
