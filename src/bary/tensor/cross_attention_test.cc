// SPDX-License-Identifier: Apache-2.0
// Attention between two texts, over padding, and over a prefix.
#include "bary/base/error.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/attention_formula_test.h"

namespace bary {
namespace {

using Look = std::function<Tensor(const std::vector<Tensor>&)>;

// The output and the gradient of each input, for one upstream gradient
std::vector<Floats> results(const Look& op, const std::vector<Tensor>& inputs, const Floats& dout) {
  Tape tape;
  Tensor y = op(inputs);
  tape.backward(sum(y * Tensor::from(y.shape(), std::span(dout).first(static_cast<size_t>(y.shape().volume())))));
  std::vector<Floats> out{y.to_vector()};
  for (const Tensor& x : inputs) out.push_back(x.grad_vector());
  return out;
}

Tensor input(Shape shape, uint64_t seed) { return Tensor::from(shape, normals(shape.volume(), seed)).require_grad(); }

// Rows [0, n) of sequence b as a sequence of its own
Tensor alone(const Tensor& x, int64_t b, int64_t n) {
  Tensor y(Shape{1, n, x.channels()});
  for (int64_t t = 0; t < n; ++t) std::copy_n(x.row(b * x.dim(1) + t), x.channels(), y.row(t));
  return y.require_grad();
}
Floats rows_of(const Floats& all, int64_t T, int64_t b, int64_t n, int64_t width) {
  const auto from = all.begin() + b * T * width;
  return {from, from + n * width};
}

void expect_near_each(const std::vector<Floats>& a, const std::vector<Floats>& b, double tolerance,
                      const std::string& what) {
  for (size_t i = 0; i < a.size(); ++i) expect_close(a[i], doubles(b[i]), tolerance, fmt::format("{} {}", what, i));
}

struct CrossCase {
  int64_t B, T, S, H, G, D;
  std::vector<int64_t> lengths;
};

AttentionOptions cross_options(const CrossCase& c) {
  AttentionOptions o;
  o.heads = c.H, o.kv_heads = c.G, o.mask = Mask::full, o.lengths = c.lengths;
  return o;
}

const std::vector<CrossCase> kCases = {{1, 1, 1, 1, 1, 2, {}},
                                       {2, 5, 9, 4, 4, 8, {9, 3}},
                                       {2, 9, 5, 4, 2, 20, {1, 5}},
                                       {3, 7, 33, 2, 1, 16, {33, 20, 1}},
                                       {2, 260, 300, 2, 2, 8, {300, 257}},
                                       {1, 3, 256, 1, 1, 8, {255}}};

TEST(CrossAttention, IsItsDefinition) {
  for (const CrossCase& c : kCases) {
    const AttentionOptions o = cross_options(c);
    const AttentionShape s{c.B, std::max(c.T, c.S), c.H, c.G, c.D};
    auto inputs = [&] {
      return std::vector<Tensor>{input({c.B, c.T, c.H * c.D}, 1), input({c.B, c.S, 2 * c.G * c.D}, 2)};
    };
    const Floats dout = normals(c.B * c.T * c.H * c.D, 3);
    const auto fused = results([&](auto& x) { return cross_attention(x[0], x[1], o); }, inputs(), dout);
    const auto plain = results([&](auto& x) { return cross_attention_by_definition(x[0], x[1], o); }, inputs(), dout);
    const Doubles values = doubles(normals(c.B * c.S * 2 * c.G * c.D, 2));
    const double tolerance = attention_tolerance(s, o, values);
    const double slope = 1 + 2 * largest(values) * largest(doubles(dout)) * static_cast<double>(c.H / c.G);
    expect_near_each(fused, plain, tolerance * slope, fmt::format("T {} S {}", c.T, c.S));
  }
}

TEST(CrossAttention, PaddingAndNeighboursChangeNoBit) {
  for (const CrossCase& c : kCases) {
    if (c.lengths.empty()) continue;
    const Tensor q = input({c.B, c.T, c.H * c.D}, 1), kv = input({c.B, c.S, 2 * c.G * c.D}, 2);
    const Floats dout = normals(c.B * c.T * c.H * c.D, 3);
    const auto all = results([&](auto& x) { return cross_attention(x[0], x[1], cross_options(c)); }, {q, kv}, dout);
    for (int64_t b = 0; b < c.B; ++b) {
      const int64_t n = c.lengths[static_cast<size_t>(b)];
      CrossCase single = c;
      single.lengths.clear();
      const auto one = results([&](auto& x) { return cross_attention(x[0], x[1], cross_options(single)); },
                               {alone(q, b, c.T), alone(kv, b, n)}, rows_of(dout, c.T, b, c.T, c.H * c.D));
      EXPECT_EQ(one[0], rows_of(all[0], c.T, b, c.T, c.H * c.D));
      EXPECT_EQ(one[1], rows_of(all[1], c.T, b, c.T, c.H * c.D));
      EXPECT_EQ(one[2], rows_of(all[2], c.S, b, n, 2 * c.G * c.D));
      const Floats whole = rows_of(all[2], c.S, b, c.S, 2 * c.G * c.D);
      for (size_t i = static_cast<size_t>(n * 2 * c.G * c.D); i < whole.size(); ++i) ASSERT_EQ(whole[i], 0);
    }
  }
}

TEST(CrossAttention, AMemoryGivesTheSameBitsToAnyNumberOfReaders) {
  for (const CrossCase& c : kCases) {
    const Tensor q = input({c.B, c.T, c.H * c.D}, 1), kv = input({c.B, c.S, 2 * c.G * c.D}, 2);
    const KeyValues memory = memorise(kv, c.G);
    const AttentionOptions o = cross_options(c);
    const Floats want = cross_attention(q, kv, o).to_vector();
    std::vector<int64_t> of;
    for (int64_t b = 0; b < c.B; ++b) of.push_back(b);
    EXPECT_EQ(cross_attention(q, memory, of, o).to_vector(), want);
    // three readers of the last source, the query of each that of the last sequence
    Tensor last = alone(q, c.B - 1, c.T), three(Shape{3, c.T, c.H * c.D});
    for (int64_t r = 0; r < 3 * c.T; ++r) std::copy_n(last.row(r % c.T), last.channels(), three.row(r));
    const Floats again = cross_attention(three, memory, {c.B - 1, c.B - 1, c.B - 1}, o).to_vector();
    for (int64_t b = 0; b < 3; ++b)
      EXPECT_EQ(rows_of(again, c.T, b, c.T, c.H * c.D), rows_of(want, c.T, c.B - 1, c.T, c.H * c.D));
  }
}

TEST(Attention, LengthsAreWhatEachSequenceGivesAlone) {
  const int64_t H = 4, G = 2, D = 8, W = (H + 2 * G) * D;
  for (int64_t T : {6, 40, 300}) {
    AttentionOptions o;
    o.heads = H, o.kv_heads = G, o.mask = Mask::full, o.lengths = {T, T - 5, 1};
    RotaryTable table(T, D, kTheta);
    o.rotary = &table;
    const Tensor x = input({3, T, W}, 1);
    const Floats dout = normals(3 * T * H * D, 2);
    const auto all = results([&](auto& v) { return attention(v[0], o); }, {x}, dout);
    AttentionOptions single = o;
    single.lengths.clear();
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t n = o.lengths[static_cast<size_t>(b)];
      const auto one =
          results([&](auto& v) { return attention(v[0], single); }, {alone(x, b, n)}, rows_of(dout, T, b, n, H * D));
      EXPECT_EQ(one[0], rows_of(all[0], T, b, n, H * D)) << T << " " << b;
      EXPECT_EQ(one[1], rows_of(all[1], T, b, n, W)) << T << " " << b;
      const Floats padding = rows_of(all[0], T, b, T, H * D);
      for (size_t i = static_cast<size_t>(n * H * D); i < padding.size(); ++i) ASSERT_EQ(padding[i], 0);
    }
  }
}

TEST(Attention, APrefixIsSeenByAll) {
  const int64_t H = 2, D = 8, W = 3 * H * D;
  for (int64_t T : {1, 9, 70, 300}) {
    for (float p : {0.0f, 0.3f}) {
      AttentionOptions o;
      o.heads = H, o.prefix = {T, T / 2, 0, 1};
      o.dropout.p = p;
      const Floats dout = normals(4 * T * H * D, 2);
      const auto fused = results([&](auto& v) { return attention(v[0], o); }, {input({4, T, W}, 1)}, dout);
      const Doubles values = doubles(normals(4 * T * W, 1));
      const double tolerance =
          attention_tolerance({4, T, H, H, D}, o, values) * (1 + 2 * largest(values) * largest(doubles(dout)));
      if (p == 0) {
        const auto plain =
            results([&](auto& v) { return attention_by_definition(v[0], o); }, {input({4, T, W}, 1)}, dout);
        expect_near_each(fused, plain, tolerance, fmt::format("T {}", T));
      }
      // all of it is a full mask, none of it a causal one
      AttentionOptions full = o, causal = o;
      full.mask = Mask::full, full.prefix.clear(), causal.prefix.clear();
      const Tensor x = input({4, T, W}, 1);
      const auto seen = results([&](auto& v) { return attention(v[0], full); }, {x}, dout);
      EXPECT_EQ(rows_of(fused[0], T, 0, T, H * D), rows_of(seen[0], T, 0, T, H * D));
      EXPECT_EQ(rows_of(fused[1], T, 0, T, W), rows_of(seen[1], T, 0, T, W));
      const auto hidden = results([&](auto& v) { return attention(v[0], causal); }, {input({4, T, W}, 1)}, dout);
      for (int64_t b : {2, 3}) {  // a prefix of one is what every query sees anyway
        EXPECT_EQ(rows_of(fused[0], T, b, T, H * D), rows_of(hidden[0], T, b, T, H * D)) << T << " " << b;
        EXPECT_EQ(rows_of(fused[1], T, b, T, W), rows_of(hidden[1], T, b, T, W)) << T << " " << b;
      }
    }
  }
}

TEST(KeyValues, ReorderedSequencesGoOnFromWhatTheirParentsHeld) {
  const int64_t H = 2, D = 8, W = 3 * H * D, T = 20;
  AttentionOptions o;
  o.heads = H;
  const Tensor x = input({3, T, W}, 1), next = input({4, 1, W}, 2);
  KeyValues cache(3, H, D, 64);
  o.cache = &cache;
  attention(x, o);
  const std::vector<int64_t> from{2, 0, 2, 2};
  cache.reorder(from);
  const Floats got = attention(next, o).to_vector();
  for (int64_t b = 0; b < 4; ++b) {
    KeyValues own(1, H, D, 64);
    o.cache = &own;
    attention(alone(x, from[static_cast<size_t>(b)], T), o);
    EXPECT_EQ(attention(alone(next, b, 1), o).to_vector(), rows_of(got, 1, b, 1, H * D)) << b;
  }
  EXPECT_THROW(cache.reorder({4}), Error);
}

TEST(CrossAttention, RefusesWhatDoesNotFit) {
  const Tensor q = input({2, 3, 16}, 1), kv = input({2, 5, 32}, 2);
  CrossCase c{2, 3, 5, 2, 2, 8, {5, 0}};
  EXPECT_THROW(cross_attention(q, kv, cross_options(c)), Error) << "an empty source";
  c.lengths = {5, 6};
  EXPECT_THROW(cross_attention(q, kv, cross_options(c)), Error) << "longer than there is";
  c.lengths = {5};
  EXPECT_THROW(cross_attention(q, kv, cross_options(c)), Error) << "one length for two";
  c.lengths.clear();
  AttentionOptions causal = cross_options(c);
  causal.mask = Mask::causal;
  EXPECT_THROW(cross_attention(q, kv, causal), Error);
  EXPECT_THROW(cross_attention(q, input({3, 5, 32}, 2), cross_options(c)), Error);
  EXPECT_THROW(cross_attention(q, memorise(kv, 2), {0, 2}, cross_options(c)), Error) << "a source that is not there";
  EXPECT_THROW(cross_attention(q, input({2, 0, 32}, 2), cross_options(c)), Error) << "sources of no positions";
  EXPECT_THROW(cross_attention(q, memorise(input({2, 0, 32}, 2), 2), {0, 1}, cross_options(c)), Error);
}

TEST(CrossAttention, NobodyReadsAMemory) {
  const CrossCase c{0, 1, 5, 2, 2, 8, {}};
  EXPECT_EQ(cross_attention(Tensor({0, 1, 16}), memorise(input({2, 5, 32}, 2), 2), {}, cross_options(c)).shape(),
            (Shape{0, 1, 16}));
}

}  // namespace
}  // namespace bary
