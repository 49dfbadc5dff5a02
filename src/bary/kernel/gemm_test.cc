// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/gemm.h"

#include "bary/base/error.h"
#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {
namespace {

// What the header promises of every element: one chain of fused multiply-adds in increasing k.
std::vector<float> chains(const Matrix& a, const Matrix& w) {
  std::vector<float> c;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < w.rows(); ++j) {
      float x = 0;
      for (int64_t k = 0; k < a.n(); ++k) x = std::fma(a(i, k), w(j, k), x);
      c.push_back(x);
    }
  }
  return c;
}

Matrix packed_of(const Matrix& w) {
  Matrix p(1, packed_size(w.rows(), w.n()));
  pack_transposed(w.data(), w.rows(), w.n(), w.ld(), p.data());
  return p;
}

std::vector<float> product(const Matrix& a, const Matrix& w) {
  Matrix p = packed_of(w), c(a.rows(), w.rows(), w.rows() + 5);
  gemm(a.rows(), w.rows(), a.n(), a.data(), a.ld(), p.data(), c.data(), c.ld());
  EXPECT_TRUE(c.gaps_untouched());
  return c.values();
}

TEST(Gemm, IsOneChainPerElementAtEverySize) {
  for (int64_t m : {1, 2, 5, 6, 7, 13}) {
    for (int64_t n : kSizes) {
      for (int64_t k : {1, 3, 16, 33}) {
        Matrix a = random_matrix(m, k, k + 3, 1), w = random_matrix(n, k, k + 1, 2);
        const std::string what = ::testing::PrintToString(std::array{m, n, k});
        std::vector<float> c = on_every_isa(what, [&] { return product(a, w); });
        expect_same_bits(c, chains(a, w), what);
        if (HasFailure()) return;
      }
    }
  }
}

// A right operand that is not packed, and chains that rest in C between blocks of k.
TEST(Gemm, EveryFormOfTheRightOperandGivesTheSameBits) {
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {7, 17, 5}, {13, 70, 300}, {6, 64, 128}, {5, 129, 1100}, {2, 33, 0}}) {
    Matrix a = random_matrix(m, k, k + 3, 1), w = random_matrix(n, k, k + 2, 2), b(k, n, n + 1);
    b.set([&](int64_t i, int64_t j) { return w(j, i); });
    const std::string what = ::testing::PrintToString(std::array{m, n, k});
    for (auto [right, ld, form] : {std::tuple{w.data(), w.ld(), Form::transposed}, {b.data(), b.ld(), Form::rows}}) {
      std::vector<float> c = on_every_isa(what, [&, m = m, n = n, k = k, right = right, ld = ld, form = form] {
        Matrix out(m, n, n + 5);
        gemm(Product{m, n, k, a.data(), a.ld(), out.data(), out.ld()}, Right{right, ld, form});
        EXPECT_TRUE(out.gaps_untouched());
        return out.values();
      });
      expect_same_bits(c, chains(a, w), what);
    }
  }
}

TEST(Gemm, AFactorThatIsCItselfOverSeveralBlocksOfK) {
  const int64_t m = 7, n = 70, k = 1200;
  Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2), factor = random_matrix(m, n, n, 3);
  std::vector<float> want = chains(a, w);
  for (int64_t i = 0; i < m * n; ++i) want[static_cast<size_t>(i)] *= factor(i / n, i % n);
  expect_same_bits(
      on_every_isa("times",
                   [&] {
                     Matrix out(m, n, n + 5), packed = packed_of(w);
                     out.set([&](int64_t r, int64_t c) { return factor(r, c); });
                     Epilogue e;
                     e.times = out.data(), e.times_ld = out.ld();
                     gemm(Product{m, n, k, a.data(), a.ld(), out.data(), out.ld()}, Right{packed.data()}, e);
                     return out.values();
                   }),
      want, "times");
}

// The epilogue comes once, after the last block of k.
TEST(Gemm, EpilogueOverSeveralBlocksOfK) {
  const int64_t m = 7, n = 70, k = 1200;
  Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2), bias = random_matrix(1, n, n, 3);
  Matrix onto = random_matrix(m, n, n, 4);
  const std::vector<float> plain = chains(a, w);
  std::vector<float> want;
  for (int64_t i = 0; i < m * n; ++i)
    want.push_back((plain[static_cast<size_t>(i)] + bias(0, i % n)) + onto(i / n, i % n));
  Epilogue e;
  e.bias = bias.data(), e.onto = onto.data(), e.onto_ld = onto.ld();
  auto run = [&](Form form, bool itself) {
    return on_every_isa("blocks", [&] {
      Matrix out(m, n, n + 5), packed = packed_of(w);
      out.set([&](int64_t r, int64_t c) { return onto(r, c); });
      Epilogue mine = e;
      if (itself) mine.onto = out.data(), mine.onto_ld = out.ld();
      gemm(Product{m, n, k, a.data(), a.ld(), out.data(), out.ld()},
           form == Form::packed ? Right{packed.data()} : Right{w.data(), w.ld(), form}, mine);
      return out.values();
    });
  };
  expect_same_bits(run(Form::packed, false), want, "packed");
  expect_same_bits(run(Form::packed, true), want, "packed, the residual in C");
  expect_same_bits(run(Form::transposed, false), want, "packed on the way");
  Matrix out(m, n);
  e.onto = out.data();
  EXPECT_THROW(
      gemm(Product{m, n, k, a.data(), a.ld(), out.data(), out.ld()}, Right{w.data(), w.ld(), Form::transposed}, e),
      Error);
}

TEST(Gemm, AgreesWithDouble) {
  const int64_t m = 13, n = 70, k = 300;
  Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2);
  std::vector<double> want = reference::product(a.doubles(), reference::transposed(w.doubles(), n, k), m, n, k);
  expect_close(product(a, w), want, 4 * kEps * std::sqrt(k) * std::sqrt(k), "product");
}

TEST(Gemm, NothingToSumIsZeroAndNoRowsIsNothing) {
  Matrix a(3, 0, 1), w(17, 0, 1), one(1, 1);
  std::vector<float> c = on_every_isa("k = 0", [&] { return product(a, w); });
  expect_same_bits(c, std::vector<float>(51, 0.0f), "zeros");
  gemm(0, 17, 4, one.data(), 4, one.data(), one.data(), 17);
  gemm(4, 0, 4, one.data(), 4, one.data(), one.data(), 17);
}

TEST(Gemm, BothPacksServeTheSameProduct) {
  for (int64_t n : kSizes) {
    const int64_t k = 19;
    Matrix w = random_matrix(n, k, k + 2, 3), flipped(k, n, n + 4);
    flipped.set([&](int64_t i, int64_t j) { return w(j, i); });
    KeepIsa keep;
    for (const std::string& isa : available_isas()) {
      force_isa(isa);
      Matrix p(1, packed_size(n, k));
      pack(flipped.data(), k, n, flipped.ld(), p.data());
      expect_same_bits(p.values(), packed_of(w).values(), isa);
    }
  }
}

TEST(Gemm, ARowDoesNotDependOnItsNeighbours) {
  const int64_t m = 20, n = 70, k = 41;
  Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2);
  for (int64_t i = 0; i < m; ++i) a(i, i) = i == 7 ? NAN : i == 8 ? HUGE_VALF : a(i, i);
  KeepIsa keep;
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    std::vector<float> all = product(a, w);
    for (int64_t i : {0, 6, 9, 19}) {
      Matrix row(1, k);
      row.set([&](int64_t, int64_t c) { return a(i, c); });
      expect_same_bits(product(row, w), {all.begin() + i * n, all.begin() + (i + 1) * n}, isa);
    }
    EXPECT_TRUE(std::isnan(all[7 * n + 3]));
  }
}

TEST(Gemm, EpilogueInItsOrder) {
  for (int64_t n : {1, 16, 17, 65, 130}) {
    const int64_t m = 8, k = 21;
    Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2), bias = random_matrix(1, n, n, 3);
    Matrix times = random_matrix(m, n, n + 1, 4), onto = random_matrix(m, n, n + 2, 5);
    std::vector<float> plain = chains(a, w);
    for (int parts = 0; parts < 8; ++parts) {
      std::vector<float> want = plain;
      for (int64_t i = 0; i < m * n; ++i) {
        float& x = want[static_cast<size_t>(i)];
        if (parts & 1) x = x + bias(0, i % n);
        if (parts & 2) x = x * times(i / n, i % n);
        if (parts & 4) x = x + onto(i / n, i % n);
      }
      for (bool in_place : {false, true}) {
        std::vector<float> got = on_every_isa("epilogue", [&] {
          Matrix p = packed_of(w), c(m, n, n + 7);
          Epilogue e;
          if (parts & 1) e.bias = bias.data();
          if (parts & 2) e.times = times.data(), e.times_ld = times.ld();
          if (parts & 4) e.onto = onto.data(), e.onto_ld = onto.ld();
          if (in_place && (parts & 6) == 2) {  // as a backward pass writes d hidden over act'
            c.set([&](int64_t r, int64_t j) { return times(r, j); });
            e.times = c.data(), e.times_ld = c.ld();
          }
          if (in_place && (parts & 4)) {
            c.set([&](int64_t r, int64_t j) { return onto(r, j); });
            e.onto = c.data(), e.onto_ld = c.ld();
          }
          gemm(m, n, k, a.data(), a.ld(), p.data(), c.data(), c.ld(), e);
          EXPECT_TRUE(c.gaps_untouched());
          return c.values();
        });
        expect_same_bits(got, want, "parts " + std::to_string(parts));
      }
    }
  }
}

TEST(Gemm, ActivationAndItsDerivative) {
  const int64_t m = 7, k = 9;
  for (int64_t n : {1, 17, 64, 130}) {
    Matrix a = random_matrix(m, k, k, 1), w = random_matrix(n, k, k, 2), bias = random_matrix(1, n, n, 3);
    std::vector<float> x = chains(a, w);
    for (Activation act : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::relu,
                           Activation::silu, Activation::tanh}) {
      for (bool derivative : {false, true}) {
        std::vector<float> got = on_every_isa("activation", [&] {
          Matrix p = packed_of(w), c(m, n, n + 3), d(m, n, n + 1);
          Epilogue e;
          e.bias = bias.data();
          e.activation = act;
          if (derivative) e.derivative = d.data(), e.derivative_ld = d.ld();
          gemm(m, n, k, a.data(), a.ld(), p.data(), c.data(), c.ld(), e);
          EXPECT_TRUE(c.gaps_untouched() && d.gaps_untouched());
          std::vector<float> out = c.values();
          if (derivative) append(out, d.values());
          return out;
        });
        std::vector<double> want(got.size());
        for (size_t i = 0; i < x.size(); ++i) {
          auto r = reference::activate(act, static_cast<double>(x[i] + bias(0, static_cast<int64_t>(i) % n)));
          want[i] = r.value;
          if (derivative) want[i + x.size()] = r.slope;
        }
        expect_close(got, want, 8 * kEps * std::max(1.0, largest(want)),
                     "act " + std::to_string(static_cast<int>(act)));
      }
    }
  }
}

}  // namespace
}  // namespace bary::kernel
