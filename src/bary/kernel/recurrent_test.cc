// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/recurrent.h"

#include "bary/base/parallel.h"
#include "bary/base/sha256.h"
#include "bary/kernel/checks_test.h"

namespace bary::kernel {
namespace {

using Doubles = std::vector<double>;
constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru};
const char* name(Cell cell) { return cell == Cell::rnn ? "rnn" : cell == Cell::lstm ? "lstm" : "gru"; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit in double: a and u hold its gates; the new h and c
std::array<double, 2> next(Cell cell, const double* a, const double* u, double h, double c) {
  if (cell == Cell::rnn) return {std::tanh(a[0] + u[0]), 0};
  if (cell == Cell::lstm) {
    const double i = sigmoid(a[0] + u[0]), f = sigmoid(a[1] + u[1]), g = std::tanh(a[2] + u[2]),
                 o = sigmoid(a[3] + u[3]), cell_state = f * c + i * g;
    return {o * std::tanh(cell_state), cell_state};
  }
  const double r = sigmoid(a[0] + u[0]), z = sigmoid(a[1] + u[1]), n = std::tanh(a[2] + r * u[2]);
  return {(1 - z) * n + z * h, 0};
}

// A step of a few rows with every array of its own, none of them dense
struct Case {
  Case(Cell cell_, int64_t rows_, int64_t n_)
      : cell(cell_),
        rows(rows_),
        n(n_),
        a(random_matrix(rows, gates_of(cell) * n, gates_of(cell) * n + 3, 1)),
        u(random_matrix(rows, gates_of(cell) * n, gates_of(cell) * n + 5, 2)),
        h(random_matrix(rows, n, n + 1, 3)),
        c(random_matrix(rows, n, n + 2, 4)),
        dy(random_matrix(rows, n, n + 3, 5)),
        dh(random_matrix(rows, n, n + 4, 6)),
        dc(random_matrix(rows, n, n + 1, 7)) {}
  Cell cell;
  int64_t rows, n;
  Matrix a, u, h, c, dy, dh, dc;
};

Strided<float> view(Matrix& m) { return {m.data(), m.ld()}; }
Strided<const float> view(const Matrix& m) { return {m.data(), m.ld()}; }
Matrix copy_of(const Matrix& m) {
  Matrix out(m.rows(), m.n(), m.ld());
  out.set([&](int64_t r, int64_t j) { return m(r, j); });
  return out;
}

struct Options {
  bool keep = true, upstream = true;
  std::vector<int64_t> lengths = {};
  int64_t t = 0;
};

// gates, h, c, y; then the gradients of a, u, c and the direct part of h's
struct Outcome {
  std::vector<float> gates, h, c, y, da, du, dc, direct;
  std::vector<float> all() const {
    std::vector<float> v;
    for (const auto* part : {&gates, &h, &c, &y, &da, &du, &dc, &direct}) append(v, *part);
    return v;
  }
};

Outcome run(const Case& k, const Options& o = {}) {
  CellStep step{k.cell, k.rows, k.n, o.t, o.lengths.empty() ? nullptr : o.lengths.data()};
  Matrix gates = copy_of(k.a), h = copy_of(k.h), c = copy_of(k.c), y(k.rows, k.n, k.n + 6), kept(k.rows, k.n, k.n + 7);
  kept.fill(0);
  CellForward f;
  f.gates = view(gates), f.hidden = view(k.u), f.h = view(h), f.c = view(c), f.y = view(y);
  if (o.keep) f.kept = view(kept);
  cell_forward(step, f);
  Outcome out{gates.values(), h.values(), c.values(), y.values(), {}, {}, {}, {}};
  EXPECT_TRUE(gates.gaps_untouched() && h.gaps_untouched() && c.gaps_untouched() && y.gaps_untouched() &&
              kept.gaps_untouched());
  if (!o.keep) return out;
  Matrix du(k.rows, k.u.n(), k.u.n() + 1), dc = copy_of(k.dc), direct(k.rows, k.n, k.n + 1);
  direct.fill(0);
  CellBackward b;
  b.gates = view(gates), b.hidden = view(du), b.kept = view(std::as_const(kept)), b.dh = view(k.dh), b.dc = view(dc);
  b.before = view(k.cell == Cell::lstm ? k.c : k.h), b.direct = view(direct);
  if (o.upstream) b.dy = view(k.dy);
  cell_backward(step, b);
  EXPECT_TRUE(gates.gaps_untouched() && du.gaps_untouched() && dc.gaps_untouched() && direct.gaps_untouched());
  out.da = gates.values(), out.du = du.values(), out.dc = dc.values(), out.direct = direct.values();
  return out;
}

// The same numbers in double: those of forward from the formula, those of backward from its central differences
Outcome expect_formula(const Case& k, const Outcome& got, double upstream) {
  const int64_t G = gates_of(k.cell);
  Doubles h, c, da(got.da.size()), du(got.du.size()), dc, direct;
  for (int64_t r = 0; r < k.rows; ++r) {
    for (int64_t j = 0; j < k.n; ++j) {
      double in[10];  // a, u, h, c of this unit
      for (int64_t g = 0; g < G; ++g) in[g] = k.a(r, g * k.n + j), in[4 + g] = k.u(r, g * k.n + j);
      in[8] = k.h(r, j), in[9] = k.c(r, j);
      const double wh = k.dh(r, j) + upstream * k.dy(r, j), wc = k.cell == Cell::lstm ? k.dc(r, j) : 0;
      auto after = [&] { return next(k.cell, in, in + 4, in[8], in[9]); };
      auto slope = [&](int i) {
        const double was = in[i], step = 1e-5;
        in[i] = was + step;
        const auto up = after();
        in[i] = was - step;
        const auto down = after();
        in[i] = was;
        return (wh * (up[0] - down[0]) + wc * (up[1] - down[1])) / (2 * step);
      };
      h.push_back(after()[0]);
      c.push_back(k.cell == Cell::lstm ? after()[1] : in[9]);
      for (int64_t g = 0; g < G; ++g) {
        da[static_cast<size_t>((r * G + g) * k.n + j)] = slope(static_cast<int>(g));
        du[static_cast<size_t>((r * G + g) * k.n + j)] = slope(static_cast<int>(4 + g));
      }
      direct.push_back(k.cell == Cell::gru ? slope(8) : 0);
      dc.push_back(k.cell == Cell::lstm ? slope(9) : static_cast<double>(k.dc(r, j)));
    }
  }
  const double forward = 8 * kEps, backward = 16 * kEps;  // a few roundings of numbers up to the largest
  expect_close(got.h, h, forward * std::max(1.0, largest(h)), "h");
  expect_close(got.c, c, forward * std::max(1.0, largest(c)), "c");
  expect_same_bits(got.y, got.h, "y is h");
  expect_close(got.da, da, backward * std::max(1.0, largest(da)), "gradient of a");
  expect_close(got.du, du, backward * std::max(1.0, largest(du)), "gradient of u");
  expect_close(got.dc, dc, backward * std::max(1.0, largest(dc)), "gradient of c");
  expect_close(got.direct, direct, backward * std::max(1.0, largest(direct)), "direct part");
  return got;
}

TEST(Recurrent, CellsFollowTheirFormulaAtEverySize) {
  for (Cell cell : kCells) {
    for (int64_t n : kSizes) {
      const Case k(cell, 3, n);
      Outcome got;
      on_every_isa(name(cell), [&] { return (got = run(k)).all(); });
      SCOPED_TRACE(std::string(name(cell)) + " n " + std::to_string(n));
      expect_formula(k, got, 1);
    }
  }
}

TEST(Recurrent, WithoutUpstreamAndWithoutKeeping) {
  for (Cell cell : kCells) {
    const Case k(cell, 2, 19);
    Options o;
    o.upstream = false;
    expect_formula(k, run(k, o), 0);
    o.keep = false;
    const Outcome bare = run(k, o), whole = run(k);
    expect_same_bits(bare.h, whole.h, name(cell));
    expect_same_bits(bare.gates, whole.gates, name(cell));
  }
}

TEST(Recurrent, ASequenceThatIsOverKeepsItsState) {
  for (Cell cell : kCells) {
    const int64_t n = 17;
    const Case k(cell, 3, n);
    Options o;
    o.lengths = {5, 4, 0}, o.t = 4;  // the first takes its last step, the others are over
    const Outcome got = run(k, o);
    on_every_isa(name(cell), [&] { return run(k, o).all(); });
    const Outcome all = run(k);
    auto rows = [&](const std::vector<float>& v, int64_t first, int64_t count) {
      const int64_t width = static_cast<int64_t>(v.size()) / 3;
      return std::vector<float>(v.begin() + first * width, v.begin() + (first + count) * width);
    };
    for (auto part : {&Outcome::gates, &Outcome::h, &Outcome::c, &Outcome::y, &Outcome::da, &Outcome::du, &Outcome::dc,
                      &Outcome::direct})
      expect_same_bits(rows(got.*part, 0, 1), rows(all.*part, 0, 1), "the one that runs");
    expect_same_bits(rows(got.h, 1, 2), rows(k.h.values(), 1, 2), "h");
    expect_same_bits(rows(got.c, 1, 2), rows(k.c.values(), 1, 2), "c");
    expect_same_bits(rows(got.dc, 1, 2), rows(k.dc.values(), 1, 2), "dc");
    for (auto part : {&Outcome::y, &Outcome::da, &Outcome::du, &Outcome::direct})
      for (float v : rows(got.*part, 1, 2)) EXPECT_EQ(v, 0);
  }
}

// f of each point as a gate comes out: gate 0 of an rnn is a tanh, of a gru a sigmoid
std::vector<float> gate_of(Cell cell, const std::vector<float>& points) {
  const int64_t n = static_cast<int64_t>(points.size()), G = gates_of(cell);
  return on_every_isa(name(cell), [&] {
    Matrix gates(1, G * n), zero(1, G * n), h(1, n), y(1, n);
    gates.set([&](int64_t, int64_t j) { return points[static_cast<size_t>(j % n)]; });
    zero.fill(0);
    h.fill(0);
    CellForward f;
    f.gates = view(gates), f.hidden = view(std::as_const(zero)), f.h = view(h), f.y = view(y);
    cell_forward({cell, 1, n}, f);
    std::vector<float> out = gates.values();
    out.resize(points.size());
    for (float& v : out)
      if (std::isnan(v)) v = NAN;
    return out;
  });
}

TEST(Recurrent, TanhAndSigmoidWithinTheirBounds) {
  std::vector<float> points;
  for (double v = -30; v < 30; v += 0.0007) points.push_back(static_cast<float>(v));
  for (double v = 1e-37; v < 30; v *= 1.01) {
    points.push_back(static_cast<float>(v));
    points.push_back(static_cast<float>(-v));
  }
  const std::vector<float> t = gate_of(Cell::rnn, points), s = gate_of(Cell::gru, points);
  double worst = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = points[i], error = std::fabs(t[i] / std::tanh(x) - 1);
    ASSERT_TRUE(error <= 1.8e-7) << "tanh " << x << " -> " << t[i];
    worst = std::max(worst, error);
    ASSERT_TRUE(std::fabs(s[i] / sigmoid(x) - 1) <= 4 * kEps) << "sigmoid " << x << " -> " << s[i];
  }
  EXPECT_GT(worst, 6e-8);
}

TEST(Recurrent, TanhAndSigmoidAtTheEnds) {
  const float inf = HUGE_VALF;
  const std::vector<float> points{inf, -inf, 3e38f, -3e38f, 0, -0.0f, NAN};
  const std::vector<float> t = gate_of(Cell::rnn, points), s = gate_of(Cell::gru, points);
  const std::vector<float> tanhs{1, -1, 1, -1, 0, 0}, sigmoids{1, 0, 1, 0, 0.5f, 0.5f};
  for (size_t i = 0; i < tanhs.size(); ++i) {
    EXPECT_EQ(t[i], tanhs[i]) << points[i];
    EXPECT_EQ(s[i], sigmoids[i]) << points[i];
  }
  EXPECT_TRUE(std::isnan(t[6]) && std::isnan(s[6]));
}

// As golden_test.cc: a change here is a change of every trained recurrent model.
TEST(Recurrent, TheBitsAreTheDocumentedOnes) {
  FlushDenormals flush;
  auto hash = [](Cell cell) {
    const std::vector<float> bits = on_every_isa(name(cell), [&] { return run(Case(cell, 4, 37)).all(); });
    std::string bytes(bits.size() * 4, '\0');
    std::memcpy(bytes.data(), bits.data(), bytes.size());
    return sha256_hex(bytes).substr(0, 16);
  };
  EXPECT_EQ(hash(Cell::rnn), "6c161eb12ef4f510");
  EXPECT_EQ(hash(Cell::lstm), "15c10c0e80d71647");
  EXPECT_EQ(hash(Cell::gru), "96026a673b4ae4b7");
}

}  // namespace
}  // namespace bary::kernel
