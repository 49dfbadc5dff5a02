// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/attention.h"

#include <limits>

#include "bary/base/error.h"
#include "bary/tensor/attention_formula_test.h"
#include "bary/tensor/parameters.h"

namespace bary {
namespace {

using Op = std::function<Tensor(const Tensor&, const AttentionOptions&)>;
const Op kFused = [](const Tensor& x, const AttentionOptions& o) { return attention(x, o); };
const Op kDefinition = [](const Tensor& x, const AttentionOptions& o) { return attention_by_definition(x, o); };

struct Result {
  Floats out, gradient;
};
Result run(const AttentionShape& s, const AttentionOptions& o, const Op& op, const Floats& values, const Floats& dout) {
  Tensor x = Tensor::from({s.B, s.T, s.width()}, values).require_grad();
  Tape tape;
  Tensor y = op(x, o);
  tape.backward(sum(y * Tensor::from(y.shape(), dout)));
  return {y.to_vector(), x.grad_vector()};
}

void check(const AttentionShape& s, const AttentionOptions& o, bool definition_too = true) {
  const std::string what = text_of(s, o);
  const Floats x = normals(s.B * s.T * s.width(), 1), dout = normals(s.B * s.T * s.H * s.D, 2);
  AttentionFormula want = attention_formula(s, o, doubles(x), doubles(dout));
  const double tolerance = attention_tolerance(s, o, doubles(x));
  // a gradient of a key adds up the queries of all heads of its group, each a product of three such factors
  const double slope = 1 + 2 * largest(doubles(x)) * largest(doubles(dout)) *
                               (o.scale ? 1 : std::sqrt(static_cast<double>(s.D))) * static_cast<double>(s.H / s.G);
  Result fused = run(s, o, kFused, x, dout);
  expect_close(fused.out, want.out, tolerance, "fused, " + what);
  expect_close(fused.gradient, want.gradient, tolerance * slope, "fused gradient, " + what);
  if (!definition_too) return;
  Result plain = run(s, o, kDefinition, x, dout);
  expect_close(plain.out, want.out, tolerance, "definition, " + what);
  expect_close(plain.gradient, want.gradient, tolerance * slope, "gradient of definition, " + what);
  expect_close(fused.out, doubles(plain.out), tolerance, "both, " + what);
  expect_close(fused.gradient, doubles(plain.gradient), tolerance * slope, "both gradients, " + what);
}

enum class Place { none, rotary, alibi };

void check_masks_and_places(const AttentionShape& s, bool scale) {
  RotaryTable table(s.T, s.D, kTheta);
  for (Mask mask : {Mask::causal, Mask::full, Mask::window}) {
    for (Place place : {Place::none, Place::rotary, Place::alibi}) {
      AttentionOptions o;
      o.heads = s.H;
      o.kv_heads = s.G == s.H ? 0 : s.G;
      o.mask = mask;
      o.window = 5;
      o.scale = scale;
      o.alibi = place == Place::alibi;
      if (place == Place::rotary) o.rotary = &table;
      check(s, o);
    }
  }
}

TEST(Attention, EveryCombination) {
  for (auto [H, G] : {std::array<int64_t, 2>{1, 1}, {4, 4}, {4, 2}, {4, 1}})
    for (int64_t D : {2, 8, 20})
      for (bool scale : {true, false}) check_masks_and_places({2, 9, H, G, D}, scale);
}

TEST(Attention, OnePositionAndMany) {
  for (int64_t T : {1, 2, 6, 7, 64, 65, 256, 257}) check_masks_and_places({1, T, 2, 1, 6}, true);
  check_masks_and_places({1, 300, 2, 2, 16}, true);
}

TEST(Attention, DropoutByHeadAndSequence) {
  AttentionShape s{2, 20, 4, 2, 8};
  AttentionOptions o;
  o.heads = 4;
  o.kv_heads = 2;
  o.dropout.p = 0.3f;
  o.dropout.seed = 5;
  o.rows.sequence = 40;
  check(s, o, false);
  s.T = 270;
  check(s, o, false);
}

// The formula's analytic gradient is itself checked, once, against its differences.
TEST(Attention, FormulaAgainstCentralDifferences) {
  const AttentionShape s{1, 5, 2, 1, 4};
  RotaryTable table(5, 4, kTheta);
  AttentionOptions o;
  o.heads = 2;
  o.kv_heads = 1;
  o.rotary = &table;
  check_op({"attention",
            {{1, 5, s.width()}},
            [&](auto& x) { return attention(x[0], o); },
            [&](auto& x) { return attention_formula(s, o, x[0]).out; },
            20});
  const Floats dout = normals(5 * 8, 7);
  std::vector<Doubles> x{doubles(normals(5 * s.width(), 100))};
  OpCase c{"", {}, {}, [&](auto& v) { return attention_formula(s, o, v[0]).out; }};
  Doubles g = central_differences(c, x, 0), want = attention_formula(s, o, x[0], doubles(dout)).gradient;
  for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], want[i], 1e-8);
}

TEST(Attention, AParameterAsInput) {  // its rows are not padded
  Parameters p(1);
  const int64_t T = 6, D = 6;
  Tensor x = p.add("x", {1, T, 3 * D}, Role::matrix, {Init::Kind::normal, 1});
  RotaryTable table(T, D, kTheta);
  AttentionOptions o;
  o.rotary = &table;
  Floats g(static_cast<size_t>(p.size()), 0.0f);
  Tape tape(g.data());
  Tensor y = attention(x, o);
  tape.backward(sum(y));
  Result want = run({1, T, 1, 1, D}, o, kFused, x.to_vector(), Floats(static_cast<size_t>(T * D), 1.0f));
  expect_same_bits(y.to_vector(), want.out, "out");
  g.resize(want.gradient.size());
  expect_same_bits(g, want.gradient, "gradient");
}

TEST(Attention, LookSeesTheKernelsPatternAndChangesNothing) {
  for (int64_t T : {5, 70, 300}) {
    for (bool recording : {false, true}) {
      const AttentionShape s{2, T, 4, 2, 8};
      RotaryTable table(T, 8, kTheta);
      AttentionOptions o;
      o.heads = 4;
      o.kv_heads = 2;
      o.mask = Mask::window;
      o.window = 60;
      o.rotary = &table;
      Tensor x = random_tensor({2, T, s.width()}, 1, 3);
      if (recording) x.require_grad();
      Tape tape;
      Floats plain = attention(x, o).to_vector(), pattern;
      Shape shape;
      o.look = [&](const Tensor& p) { shape = p.shape(), pattern = p.to_vector(); };
      expect_same_bits(attention(x, o).to_vector(), plain, "watched");
      EXPECT_EQ(shape, (Shape{2, 4, T, T}));
      AttentionFormula want = attention_formula(s, o, doubles(x));
      expect_close(pattern, want.pattern, attention_tolerance(s, o, doubles(x)), "pattern");
      for (size_t i = 0; i < pattern.size(); ++i) {
        const int64_t t = static_cast<int64_t>(i) / T % T, j = static_cast<int64_t>(i) % T;
        ASSERT_TRUE((j <= t && j > t - 60) || pattern[i] == 0);
      }
    }
  }
}

// Denormal weights are flushed in the pass, so they are flushed for the watcher too.
TEST(Attention, LookSeesNoNumberThatThePassFlushed) {
  AttentionOptions o;
  Tensor x = Tensor::zeros({1, 40, 3});  // one channel each for query, key and value
  for (int64_t t = 0; t < 40; ++t) x.row(t)[0] = 1;
  x.row(0)[1] = -86.5f;  // e^-86.5 is a normal number, a fortieth of it is not
  o.look = [&](const Tensor& p) {
    for (float v : p.to_vector()) EXPECT_TRUE(v == 0 || v >= std::numeric_limits<float>::min()) << v;
  };
  attention(x, o);
}

TEST(Attention, AnEditedPatternGoesOn) {
  const int64_t T = 6, D = 4;
  Tensor x = random_tensor({1, T, 6 * D}, 1);
  AttentionOptions o;
  o.heads = 2;
  Floats values = x.to_vector();
  Tensor y = attention_by_definition(x, o, [&](const Tensor& p) {
    EXPECT_EQ(p.shape(), (Shape{2, T, T}));
    Tensor first = Tensor::zeros(p.shape());  // everybody looks at position 0
    for (int64_t r = 0; r < 2 * T; ++r) first.row(r)[0] = 1;
    return first;
  });
  for (int64_t t = 0; t < T; ++t)
    for (int64_t i = 0; i < 2 * D; ++i) EXPECT_EQ(y.row(t)[i], values[static_cast<size_t>(4 * D + i)]);
}

TEST(Attention, RowsOfPaddingAreZerosByBothWays) {
  const int64_t T = 6, D = 4;
  AttentionOptions o;
  o.heads = 2, o.mask = Mask::full, o.lengths = {6, 2};
  Tensor pattern;
  o.look = [&](const Tensor& p) { pattern = p; };
  for (const Op& op : {kFused, kDefinition}) {
    const Tensor y = op(random_tensor({2, T, 6 * D}, 1), o);
    ASSERT_EQ(pattern.shape(), (Shape{2, 2, T, T}));
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t i = 0; i < 2 * D; ++i) EXPECT_EQ(y.row(T + t)[i] == 0, t >= 2) << "row " << t;
      for (int64_t j = 0; j < T; ++j) EXPECT_EQ(pattern.row(2 * T + t)[j] == 0, t >= 2 || j >= 2) << t << ", " << j;
    }
    pattern = {};
  }
}

TEST(Attention, SlopesAreThePapers) {
  for (int64_t h = 0; h < 8; ++h) EXPECT_FLOAT_EQ(alibi_slope(h, 8), std::pow(2.0f, -static_cast<float>(h + 1)));
  EXPECT_FLOAT_EQ(alibi_slope(0, 16), 0.70710678f);
}

TEST(Attention, MistakesAreNamed) {
  Tensor x({2, 3, 24});
  auto refused = [&](const std::function<void(AttentionOptions&)>& change, const Tensor& input) {
    AttentionOptions o;
    change(o);
    EXPECT_THROW(attention(input, o), Error);
    EXPECT_THROW(attention_by_definition(input, o), Error);
  };
  refused([](auto&) {}, Tensor({3, 24}));
  refused([](auto& o) { o.heads = 5; }, x);
  refused([](auto& o) { o.heads = 0; }, x);
  refused([](auto& o) { o.heads = 3, o.kv_heads = 2; }, x);
  refused([](auto& o) { o.mask = Mask::window; }, x);
  refused([](auto& o) { o.dropout.p = 1; }, x);
  EXPECT_THROW(RotaryTable(4, 5, kTheta), Error);
  RotaryTable table(2, 8, kTheta);
  refused([&](auto& a) { a.rotary = &table; }, x);  // three positions, a table of two
  RotaryTable narrow(3, 4, kTheta);
  refused([&](auto& a) { a.rotary = &narrow; }, x);  // heads of eight channels, a table for four
}

}  // namespace
}  // namespace bary
