// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/norm.h"

#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {
namespace {

struct Case {
  Case(int64_t rows, int64_t n, double shift)
      : x(random_matrix(rows, n, n + 3, 1, 1, shift)),
        weight(random_matrix(1, n, n, 2)),
        bias(random_matrix(1, n, n, 3)),
        dy(random_matrix(rows, n, n + 1, 4)),
        mean(1, rows),
        rstd(1, rows) {}
  NormRows rows(bool layer, bool with_bias) {
    return {x.rows(),
            x.n(),
            x.data(),
            x.ld(),
            weight.data(),
            with_bias ? bias.data() : nullptr,
            layer ? mean.data() : nullptr,
            rstd.data(),
            1e-5f};
  }
  Matrix x, weight, bias, dy, mean, rstd;
};

// y, then dx, dweight, dbias; the gradients start from `start`
std::vector<float> run(Case& c, bool layer, bool with_bias, bool accumulate, float start = 0) {
  NormRows r = c.rows(layer, with_bias);
  const int64_t rows = c.x.rows(), n = c.x.n();
  Matrix y(rows, n, n + 2), dx(rows, n, n + 4), dw(1, n), db(1, n);
  (layer ? layer_norm : rms_norm)(r, y.data(), y.ld());
  if (accumulate) dx.fill(start);
  dw.fill(start);
  db.fill(start);
  NormGradient g{dx.data(), dx.ld(), accumulate, dw.data(), with_bias ? db.data() : nullptr};
  (layer ? layer_norm_backward : rms_norm_backward)(r, c.dy.data(), c.dy.ld(), g);
  EXPECT_TRUE(y.gaps_untouched() && dx.gaps_untouched());
  std::vector<float> out = y.values();
  append(out, dx.values());
  append(out, dw.values());
  if (with_bias) append(out, db.values());
  return out;
}

struct Expected {
  std::vector<double> values, tolerance;
  void add(double v, double t) { values.push_back(v), tolerance.push_back(t); }
};
Expected expected(const Case& c, bool layer, bool with_bias, double start_dx, double start) {
  const int64_t rows = c.x.rows(), n = c.x.n();
  const double root = std::sqrt(static_cast<double>(n));
  Expected y, dx, dw, db;
  std::vector<double> w(static_cast<size_t>(n), start), b = w, wt(w.size(), kEps), bt = wt;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> x, u;
    double top = 0;
    for (int64_t i = 0; i < n; ++i) {
      x.push_back(c.x(r, i));
      u.push_back(static_cast<double>(c.dy(r, i)) * static_cast<double>(c.weight(0, i)));
      top = std::max(top, std::fabs(x.back()));
    }
    auto norm = reference::normalise(x.data(), n, layer, 1e-5f);
    auto d = reference::normalise_backward(norm, u, layer);
    // the mean is off by some eps of the largest |x|, and so is every h times rstd
    const double h_error = 4 * kEps * (1 + top) * norm.rstd * (layer ? 1 : 0) + 4 * kEps * root * (1 + largest(norm.h));
    for (int64_t i = 0; i < n; ++i) {
      const size_t at = static_cast<size_t>(i);
      const double weight = c.weight(0, i), dy = c.dy(r, i);
      y.add(norm.h[at] * weight + (layer && with_bias ? static_cast<double>(c.bias(0, i)) : 0),
            h_error * (1 + std::fabs(weight)) + 4 * kEps * std::fabs(static_cast<double>(c.bias(0, i))));
      dx.add(d[at] + start_dx, h_error * norm.rstd * 4 * (1 + largest(u)) * (1 + largest(norm.h)));
      w[at] += dy * norm.h[at];
      wt[at] += std::fabs(dy) * h_error + 2 * kEps * std::fabs(w[at]);
      b[at] += dy;
      bt[at] += 2 * kEps * std::fabs(b[at]);
    }
  }
  for (size_t i = 0; i < w.size(); ++i) dw.add(w[i], wt[i]), db.add(b[i], bt[i]);
  Expected all = y;
  for (const Expected* e : {&dx, &dw, &db}) {
    if (e == &db && !with_bias) continue;
    all.values.insert(all.values.end(), e->values.begin(), e->values.end());
    all.tolerance.insert(all.tolerance.end(), e->tolerance.begin(), e->tolerance.end());
  }
  return all;
}

TEST(Norm, ForwardAndBackwardAgainstDouble) {
  for (bool layer : {true, false}) {
    for (int64_t n : {1, 2, 3, 15, 16, 17, 64, 65, 127, 300}) {
      for (double shift : {0.0, 50.0}) {
        for (bool with_bias : {true, false}) {
          if (!layer && with_bias) continue;
          Case c(5, n, shift);
          const bool accumulate = with_bias;
          const std::string what = std::string(layer ? "layer" : "rms") + " n " + std::to_string(n);
          std::vector<float> got = on_every_isa(what, [&] { return run(c, layer, with_bias, accumulate, 0.5f); });
          Expected want = expected(c, layer, with_bias, accumulate ? 0.5 : 0, 0.5);
          ASSERT_EQ(got.size(), want.values.size());
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_TRUE(std::fabs(got[i] - want.values[i]) <= want.tolerance[i])
                << what << " at " << i << ": " << got[i] << ", expected " << want.values[i] << " +- "
                << want.tolerance[i];
          }
        }
      }
    }
  }
}

TEST(Norm, ARowAloneAndRowsInCallsGiveTheSameBits) {
  for (bool layer : {true, false}) {
    Case c(23, 70, 1);
    std::vector<float> whole = run(c, layer, layer, false);
    NormRows all = c.rows(layer, layer);
    Matrix y(23, 70), dx(23, 70), dw(1, 70), db(1, 70);
    dw.fill(0);
    db.fill(0);
    for (int64_t r = 0; r < 23; ++r) {
      NormRows one = all;
      one.rows = 1;
      one.x += r * c.x.ld();
      if (layer) one.mean += r;
      one.rstd += r;
      (layer ? layer_norm : rms_norm)(one, y.data() + r * y.ld(), y.ld());
      NormGradient g{dx.data() + r * dx.ld(), dx.ld(), false, dw.data(), layer ? db.data() : nullptr};
      (layer ? layer_norm_backward : rms_norm_backward)(one, c.dy.data() + r * c.dy.ld(), c.dy.ld(), g);
    }
    std::vector<float> single = y.values();
    append(single, dx.values());
    append(single, dw.values());
    if (layer) append(single, db.values());
    expect_same_bits(single, whole, layer ? "layer" : "rms");
  }
}

TEST(Norm, AConstantRowAndOneChannelAreBiasAlone) {
  for (int64_t n : {1, 5, 64}) {
    Case c(2, n, 0);
    c.x.fill(3.25f);
    std::vector<float> got = run(c, true, true, false);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], c.bias(0, i)) << n;
  }
}

TEST(Norm, ANaNStaysInItsRow) {
  Case c(3, 40, 0);
  c.x(1, 39) = NAN;
  std::vector<float> got = run(c, true, true, false);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(std::isnan(got[static_cast<size_t>(i)]), i / 40 == 1) << i;
}

}  // namespace
}  // namespace bary::kernel
