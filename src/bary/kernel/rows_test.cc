// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/rows.h"

#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {
namespace {

Matrix copy_of(const Matrix& a, int64_t ld) {
  Matrix c(a.rows(), a.n(), ld);
  c.set([&](int64_t r, int64_t j) { return a(r, j); });
  return c;
}

TEST(Rows, Add) {
  for (int64_t n : kSizes) {
    const int64_t rows = 4;
    Matrix a = random_matrix(rows, n, n + 1, 1), y = random_matrix(rows, n, n, 2);
    std::vector<float> want;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < n; ++c) want.push_back(y(r, c) + a(r, c));
    std::vector<float> got = on_every_isa("rows", [&] {
      Matrix to = copy_of(y, n + 3);
      add_rows(rows, n, a.data(), a.ld(), to.data(), to.ld());
      EXPECT_TRUE(to.gaps_untouched());
      return to.values();
    });
    expect_same_bits(got, want, "n " + std::to_string(n));
  }
}

TEST(PrefixMean, IsTheMeanOfThePrefixInAnyCalls) {
  const int64_t T = 50;
  for (int64_t n : kSizes) {
    Matrix x = random_matrix(T, n, n + 1, 1);
    auto in_calls = [&](int64_t chunk) {
      Matrix sum(1, n), y(T, n, n + 2);
      sum.fill(0);
      for (int64_t t = 0; t < T; t += chunk)
        prefix_mean(std::min(chunk, T - t), n, t, x.data() + t * x.ld(), x.ld(), sum.data(), y.data() + t * y.ld(),
                    y.ld());
      EXPECT_TRUE(y.gaps_untouched());
      return y.values();
    };
    std::vector<float> whole = on_every_isa("prefix_mean", [&] { return in_calls(T); });
    for (int64_t chunk : {1, 7, 49}) expect_same_bits(in_calls(chunk), whole, "in calls of " + std::to_string(chunk));
    std::vector<double> want;
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t c = 0; c < n; ++c) {
        double s = 0;
        for (int64_t j = 0; j <= t; ++j) s += x(j, c);
        want.push_back(s / static_cast<double>(t + 1));
      }
    }
    expect_close(whole, want, 4 * kEps * std::sqrt(T) * 4, "prefix_mean");
  }
}

TEST(PrefixMean, Backward) {
  const int64_t T = 50;
  for (int64_t n : {1, 17, 64}) {
    Matrix dy = random_matrix(T, n, n + 1, 1), before = random_matrix(T, n, n, 2);
    for (bool accumulate : {false, true}) {
      std::vector<float> got = on_every_isa("prefix_mean_backward", [&] {
        Matrix dx = accumulate ? copy_of(before, n + 2) : Matrix(T, n, n + 2);
        prefix_mean_backward(T, n, dy.data(), dy.ld(), dx.data(), dx.ld(), accumulate);
        EXPECT_TRUE(dx.gaps_untouched());
        return dx.values();
      });
      std::vector<double> want;
      for (int64_t j = 0; j < T; ++j) {
        for (int64_t c = 0; c < n; ++c) {
          double s = accumulate ? static_cast<double>(before(j, c)) : 0.0;
          for (int64_t t = j; t < T; ++t) s += dy(t, c) / static_cast<double>(t + 1);
          want.push_back(s);
        }
      }
      expect_close(got, want, 4 * kEps * std::sqrt(T) * 4, "backward");
    }
  }
}

TEST(RotateRows, TurnsPairsAndBack) {
  const int64_t T = 5;
  for (int64_t D : {2, 6, 16, 32, 34, 80, 128}) {
    for (int64_t heads : {1, 3}) {
      Matrix x = random_matrix(T, heads * D, heads * D + 5, 1), cosines(T, D / 2), sines(T, D / 2);
      auto angle = [&](int64_t t, int64_t i) {
        return static_cast<double>(t + 3) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(D));
      };
      cosines.set([&](int64_t t, int64_t i) { return static_cast<float>(std::cos(angle(t, i))); });
      sines.set([&](int64_t t, int64_t i) { return static_cast<float>(std::sin(angle(t, i))); });
      std::vector<float> got = on_every_isa("rotate", [&] {
        Matrix y = copy_of(x, x.ld());
        rotate_rows(T, heads, D, y.data(), y.ld(), cosines.data(), sines.data(), 1);
        std::vector<float> out = y.values();
        rotate_rows(T, heads, D, y.data(), y.ld(), cosines.data(), sines.data(), -1);
        EXPECT_TRUE(y.gaps_untouched());
        append(out, y.values());
        return out;
      });
      std::vector<double> want = x.doubles(), back = want;
      for (int64_t t = 0; t < T; ++t)
        for (int64_t h = 0; h < heads; ++h)
          reference::rotate(want.data() + (t * heads + h) * D, D, static_cast<double>(t + 3), 10000, 1);
      want.insert(want.end(), back.begin(), back.end());
      expect_close(got, want, 4 * kEps * std::max(1.0, largest(back)), "D " + std::to_string(D));
    }
  }
}

}  // namespace
}  // namespace bary::kernel
