// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bary/kernel/checks_test.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {
namespace {

std::vector<float> chains(const Matrix& a, const Matrix& b, const Matrix& start) {
  std::vector<float> c;
  for (int64_t i = 0; i < a.n(); ++i) {
    for (int64_t j = 0; j < b.n(); ++j) {
      float x = start(i, j);
      for (int64_t r = 0; r < a.rows(); ++r) x = std::fma(a(r, i), b(r, j), x);
      c.push_back(x);
    }
  }
  return c;
}

// rows [0, r) of the operands in calls of `chunk` rows
std::vector<float> product(const Matrix& a, const Matrix& b, const Matrix& start, int64_t chunk, RowStart from = {}) {
  Matrix c(a.n(), b.n(), b.n() + 3);
  c.set([&](int64_t i, int64_t j) { return start(i, j); });
  for (int64_t r = 0; r < a.rows(); r += chunk) {
    gemm_transposed(a.n(), b.n(), std::min(chunk, a.rows() - r), a.data() + r * a.ld(), a.ld(), b.data() + r * b.ld(),
                    b.ld(), c.data(), c.ld(), {from.causal, from.shift - r});
  }
  EXPECT_TRUE(c.gaps_untouched());
  return c.values();
}

// From 24 columns on the operands are copied, 264 columns at a time.
TEST(GemmTransposed, ContinuesOneChainPerElement) {
  for (int64_t m : {1, 5, 6, 7, 20, 24, 29}) {
    for (int64_t n : kSizes) {
      for (int64_t r : {1, 17, 127, 128, 129}) {
        Matrix a = random_matrix(r, m, m + 2, 1), b = random_matrix(r, n, n + 1, 2), c = random_matrix(m, n, n, 3);
        const std::string what = ::testing::PrintToString(std::array{m, n, r});
        expect_same_bits(on_every_isa(what, [&] { return product(a, b, c, r); }), chains(a, b, c), what);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(GemmTransposed, FromZeroNeverReadsWhatIsThere) {
  for (int64_t m : {1, 6, 20, 26}) {
    for (int64_t n : kSizes) {
      for (int64_t r : {1, 128, 300}) {
        Matrix a = random_matrix(r, m, m + 2, 1), b = random_matrix(r, n, n + 1, 2), c(m, n, n + 3);
        const std::string what = ::testing::PrintToString(std::array{m, n, r});
        Matrix zeros(m, n);
        zeros.fill(0);
        expect_same_bits(on_every_isa(what,
                                      [&] {
                                        c.set([](int64_t, int64_t) { return NAN; });
                                        RowStart start;
                                        start.from_zero = true;
                                        gemm_transposed(m, n, r, a.data(), a.ld(), b.data(), b.ld(), c.data(), c.ld(),
                                                        start);
                                        EXPECT_TRUE(c.gaps_untouched());
                                        return c.values();
                                      }),
                         chains(a, b, zeros), what);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(GemmTransposed, NoRowsFromZeroAreZeros) {
  for (int64_t m : {5, 30}) {
    for (int64_t group : {0, 4}) {
      Matrix c(m, 300, 303);
      const auto got = on_every_isa("no rows", [&] {
        c.set([](int64_t, int64_t) { return NAN; });
        RowStart start;
        start.from_zero = true, start.group = group;
        gemm_transposed(m, 300, 0, nullptr, m, nullptr, 300, c.data(), c.ld(), start);
        EXPECT_TRUE(c.gaps_untouched());
        return c.values();
      });
      for (float x : got) EXPECT_EQ(x, 0);
    }
  }
}

// Row chains of `group` rows, added to `start` one after another
std::vector<float> grouped_chains(const Matrix& a, const Matrix& b, const Matrix& start, int64_t group) {
  std::vector<float> want;
  for (int64_t i = 0; i < a.n(); ++i) {
    for (int64_t j = 0; j < b.n(); ++j) {
      float sum = start(i, j);
      for (int64_t g = 0; g < a.rows(); g += group) {
        float x = 0;
        for (int64_t k = g; k < std::min(a.rows(), g + group); ++k) x = std::fma(a(k, i), b(k, j), x);
        sum += x;
      }
      want.push_back(sum);
    }
  }
  return want;
}

TEST(GemmTransposed, GroupsAreChainsOfTheirOwnAddedInOrder) {
  for (int64_t m : {13, 30, 280}) {
    for (int64_t group : {1, 40, 64, 128, 130, 299, 500}) {
      for (bool from_zero : {false, true}) {
        const int64_t r = 300, n = 70;
        Matrix a = random_matrix(r, m, m, 1), b = random_matrix(r, n, n, 2), c = random_matrix(m, n, n, 3);
        if (from_zero) c.fill(0);
        const std::string what = ::testing::PrintToString(std::array{m, group});
        auto product = [&] {
          Matrix out(m, n, n + 3);
          out.set([&](int64_t i, int64_t j) { return from_zero ? NAN : c(i, j); });
          RowStart start;
          start.from_zero = from_zero, start.group = group;
          gemm_transposed(m, n, r, a.data(), a.ld(), b.data(), b.ld(), out.data(), out.ld(), start);
          EXPECT_TRUE(out.gaps_untouched());
          return out.values();
        };
        expect_same_bits(on_every_isa(what, product), grouped_chains(a, b, c, group), what);
        if (HasFailure()) return;
      }
    }
  }
}

// A group too long for copies of enough columns
TEST(GemmTransposed, LongGroups) {
  const int64_t r = 3000, m = 25, n = 70;
  Matrix a = random_matrix(r, m, m, 1), b = random_matrix(r, n, n, 2), c = random_matrix(m, n, n, 3);
  for (int64_t group : {1100, 1500}) {
    const std::string what = std::to_string(group);
    auto product = [&] {
      Matrix out(m, n);
      out.set([&](int64_t i, int64_t j) { return c(i, j); });
      RowStart start;
      start.group = group;
      gemm_transposed(m, n, r, a.data(), a.ld(), b.data(), b.ld(), out.data(), out.ld(), start);
      return out.values();
    };
    expect_same_bits(on_every_isa(what, product), grouped_chains(a, b, c, group), what);
  }
}

TEST(GemmTransposed, NoRowsLeaveWhatIsThere) {
  Matrix a(0, 7, 7), b(0, 9, 9), c = random_matrix(7, 9, 9, 3);
  Matrix one(1, 9);
  on_every_isa("r = 0", [&] {
    gemm_transposed(7, 9, 0, one.data(), 7, one.data(), 9, c.data(), c.ld());
    return c.values();
  });
  expect_same_bits(c.values(), random_matrix(7, 9, 9, 3).values(), "r = 0");
}

TEST(GemmTransposed, RowsInSeveralCallsGiveTheSameBits) {
  const int64_t r = 300, m = 13, n = 70;
  Matrix a = random_matrix(r, m, m, 1), b = random_matrix(r, n, n, 2), c = random_matrix(m, n, n, 3);
  std::vector<float> whole = product(a, b, c, r);
  for (int64_t chunk : {1, 7, 64, 128, 299}) {
    expect_same_bits(on_every_isa("chunks", [&] { return product(a, b, c, chunk); }), whole, std::to_string(chunk));
  }
  std::vector<double> want = reference::product(reference::transposed(a.doubles(), r, m), b.doubles(), m, n, r);
  for (size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(c.values()[i]);
  expect_close(whole, want, 4 * kEps * std::sqrt(r) * std::sqrt(r), "double");
}

TEST(GemmTransposed, CausalStartSkipsRowsOfZeros) {
  for (int64_t r : {1, 50, 128, 200}) {
    for (int64_t m : {1, 6, 13, 70}) {
      for (int64_t shift : {-300, -20, 0, 3, 130}) {
        Matrix a = random_matrix(r, m, m, 1), b = random_matrix(r, 21, 23, 2), c = random_matrix(m, 21, 21, 3);
        a.set([&](int64_t t, int64_t i) { return t < i + shift ? 0.0f : a(t, i); });
        const std::string what = ::testing::PrintToString(std::array{r, m, shift});
        std::vector<float> got = on_every_isa(what, [&] { return product(a, b, c, r, {true, shift}); });
        expect_same_bits(got, chains(a, b, c), what);
        expect_same_bits(product(a, b, c, 60, {true, shift}), got, what + " in calls of 60");
      }
    }
  }
}

// Whole tiles of rows that come too early are not even read.
TEST(GemmTransposed, CausalStartDoesNotReadWhatItSkips) {
  const int64_t r = 40, m = 30, n = 17;
  Matrix a = random_matrix(r, m, m, 1), b = random_matrix(r, n, n, 2), c(m, n, n);
  c.fill(0);
  a.set([&](int64_t t, int64_t i) { return t < i / 6 * 6 ? NAN : t < i ? 0.0f : a(t, i); });
  for (float x : on_every_isa("skipped", [&] { return product(a, b, c, r, {true, 0}); })) EXPECT_FALSE(std::isnan(x));
}

TEST(SumRows, AddsInRowOrder) {
  for (int64_t n : kSizes) {
    for (int64_t r : {0, 1, 5, 200}) {
      Matrix a = random_matrix(r, n, n + 3, 1), start = random_matrix(1, n, n, 2);
      std::vector<float> want = start.values();
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < n; ++j) want[static_cast<size_t>(j)] = want[static_cast<size_t>(j)] + a(i, j);
      std::vector<float> got = on_every_isa("sum_rows", [&] {
        Matrix out(1, n);
        out.set([&](int64_t, int64_t j) { return start(0, j); });
        sum_rows(r, n, a.data(), a.ld(), out.data());
        return out.values();
      });
      expect_same_bits(got, want, "n " + std::to_string(n));
    }
  }
}

}  // namespace
}  // namespace bary::kernel
