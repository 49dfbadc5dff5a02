// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bary/base/random.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

constexpr double kEps = 0x1p-24;

Tensor random_tensor(Shape shape, uint64_t seed) {
  RandomStream random(seed, Purpose::test);
  std::vector<float> v(static_cast<size_t>(shape.volume()));
  for (float& x : v) x = static_cast<float>(random.normal());
  return Tensor::from(shape, v);
}

double largest(const std::vector<float>& a) {
  double m = 0;
  for (float x : a) m = std::max(m, std::fabs(static_cast<double>(x)));
  return m;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double m = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - b[i]);
    m = d <= m ? m : std::isnan(d) ? HUGE_VAL : d;
  }
  return m;
}

void copy(Parameters& p, const std::string& from, const std::string& to) {
  auto source = p.values_of(*p.find(from)), target = p.values_of(*p.find(to));
  ASSERT_EQ(source.size(), target.size());
  std::copy(source.begin(), source.end(), target.begin());
}

AttentionConfig one_head(int64_t C) {
  AttentionConfig c;
  c.n_embd = C, c.n_head = 1, c.n_kv_head = 1, c.d_head = C, c.proj = false, c.pos = Position::none;
  return c;
}

// The ten lines that can be read against the fused kernel that runs.
TEST(Head, IsTheFusedAttentionWithOneHead) {
  for (int64_t T : {1, 5, 33, 300}) {
    const int64_t C = 24;
    Parameters p(3);
    Head head(Scope{&p, "head", ""}, C, C);
    Attention fused(Scope{&p, "attn", ""}, one_head(C));
    for (const char* part : {"query", "key", "value"})
      copy(p, std::string("head.") + part + ".weight", std::string("attn.") + part[0] + "_proj.weight");
    p.changed();
    auto run = [&](auto f) {
      std::vector<float> gradients(static_cast<size_t>(p.size()), 0.0f);
      Tape tape(gradients.data());
      Tensor x = random_tensor({2, T, C}, 1).require_grad();
      Tensor y = f(x);
      tape.backward(sum(y * random_tensor(y.shape(), 2)));
      return std::tuple{y.to_vector(), x.grad_vector(), gradients};
    };
    auto [y1, dx1, g1] = run([&](const Tensor& x) { return head(x); });
    auto [y2, dx2, g2] = run([&](const Tensor& x) { return fused(x, Pass{}, nullptr); });
    // sums over C channels and T keys, each rounded differently in the two
    const double n = std::sqrt(static_cast<double>(T + C));
    EXPECT_LE(distance(y1, y2), 2 * kEps * n * largest(y1)) << T;
    EXPECT_LE(distance(dx1, dx2), 4 * kEps * n * largest(dx1)) << T;
    const auto third = static_cast<int64_t>(C * C);
    std::vector<float> head_part(g1.begin(), g1.begin() + 3 * third), fused_part(g2.begin() + 3 * third, g2.end());
    EXPECT_LE(distance(head_part, fused_part),
              4 * kEps * std::sqrt(2.0 * static_cast<double>(T + C)) * largest(head_part))
        << T;
    EXPECT_GT(largest(head_part), 0);
  }
}

TEST(Attention, PartsHaveTheirNamesAndLieTogether) {
  Parameters p(3);
  AttentionConfig c;
  c.n_embd = 8, c.n_head = 4, c.n_kv_head = 2, c.d_head = 3, c.qkv_bias = true;
  Attention a(Scope{&p, "h.0.attn", "blocks.0.attn"}, c);
  auto shape = [&](const std::string& name) { return p.find("h.0.attn." + name)->shape; };
  EXPECT_EQ(shape("q_proj.weight"), (Shape{12, 8}));
  EXPECT_EQ(shape("k_proj.weight"), (Shape{6, 8}));
  EXPECT_EQ(shape("v_proj.weight"), (Shape{6, 8}));
  EXPECT_EQ(shape("k_proj.bias"), (Shape{6}));
  EXPECT_EQ(shape("out_proj.weight"), (Shape{8, 12}));
  EXPECT_EQ(shape("out_proj.bias"), (Shape{8}));
  EXPECT_EQ(p.count(), 24 * 9 + 8 * 13);
  EXPECT_EQ(a.qkv.weight.shape(), (Shape{24, 8}));
  EXPECT_EQ(a.qkv.weight.data(), p.values_of(*p.find("h.0.attn.q_proj.weight")).data());
  EXPECT_EQ(a.pattern_tap, "blocks.0.attn.hook_pattern");
  Tensor y = a(random_tensor({2, 5, 8}, 1), Pass{}, nullptr);
  EXPECT_EQ(y.shape(), (Shape{2, 5, 8}));
}

TEST(Attention, TheResidualIsAdded) {
  Parameters p(3);
  for (bool proj : {true, false}) {
    for (double drop : {0.0, 0.5}) {
      AttentionConfig c = one_head(8);
      c.proj = proj, c.dropout = drop;
      Parameters q(3);
      Attention a(Scope{&q, "attn", ""}, c);
      Tensor x = random_tensor({1, 4, 8}, 1), onto = random_tensor({1, 4, 8}, 2);
      Pass pass;
      pass.training = true;
      const std::vector<float> with = a(x, pass, nullptr, onto).to_vector(),
                               sum = (onto + a(x, pass, nullptr)).to_vector();
      EXPECT_LE(distance(with, sum), 2 * kEps * largest(sum));
    }
  }
}

TEST(Attention, AnEditThatChangesNothingChangesOnlyTheLastPlace) {
  Parameters p(3);
  AttentionConfig c;
  c.n_embd = 16, c.n_head = 4, c.n_kv_head = 2, c.d_head = 4, c.pos = Position::rotary;
  Attention a(Scope{&p, "attn", "attn"}, c);
  RotaryTable table(20, 4, 10000);
  Tensor x = random_tensor({2, 20, 16}, 1);
  const std::vector<float> fused = a(x, Pass{}, &table).to_vector();
  Probe probe;
  int edits = 0;
  probe.edit("attn.hook_pattern", [&](const Tensor& pattern) {
    ++edits;
    EXPECT_EQ(pattern.shape(), (Shape{8, 20, 20}));
    return pattern;
  });
  EXPECT_LE(distance(a(x, Pass{}, &table).to_vector(), fused), 4 * kEps * std::sqrt(36.0) * largest(fused));
  EXPECT_EQ(edits, 1);
}

TEST(Attention, ALookSeesTheEditedPattern) {
  Parameters p(3);
  AttentionConfig c;
  c.n_embd = 16, c.n_head = 4, c.n_kv_head = 4, c.d_head = 4;
  const Scope scope{&p, "attn", "attn"}, cross_scope{&p, "cross", "cross"};
  const Attention self(scope, c);
  const CrossAttention cross(cross_scope, c);
  const Tensor x = random_tensor({2, 5, 16}, 1);
  const Memory memory{random_tensor({2, 7, 16}, 2), {}, {}, {}};
  Pass pass;
  pass.memory = &memory;
  std::vector<Tensor> seen;
  Probe probe;
  for (const char* name : {"attn.hook_pattern", "cross.hook_pattern"}) {
    probe.edit(name, [](const Tensor& pattern) { return pattern * 0.0f; });
    probe.look(name, [&](const Tensor& pattern) { seen.push_back(pattern); });
  }
  self(x, pass, nullptr);
  cross(x, pass);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].shape(), (Shape{2, 4, 5, 5}));
  EXPECT_EQ(seen[1].shape(), (Shape{2, 4, 5, 7}));
  for (const Tensor& pattern : seen)
    for (float w : pattern.to_vector()) EXPECT_EQ(w, 0);
}

TEST(Attention, DropoutIsOffUnlessTraining) {
  Parameters p(3);
  AttentionConfig c;
  c.n_embd = 16, c.d_head = 4, c.dropout = 0.5;
  Attention a(Scope{&p, "attn", ""}, c);
  c.dropout = 0;
  Parameters q(3);
  Attention without(Scope{&q, "attn", ""}, c);
  Tensor x = random_tensor({2, 6, 16}, 1);
  EXPECT_EQ(a(x, Pass{}, nullptr).to_vector(), without(x, Pass{}, nullptr).to_vector());
  Pass pass;
  pass.training = true, pass.seed = 1, pass.step = 4;
  const std::vector<float> dropped = a(x, pass, nullptr).to_vector();
  EXPECT_NE(dropped, a(x, Pass{}, nullptr).to_vector());
  EXPECT_EQ(dropped, a(x, pass, nullptr).to_vector()) << "the same step drops the same";
  pass.step = 5;
  EXPECT_NE(dropped, a(x, pass, nullptr).to_vector());
}

// N4: dropout sits on the output of each part before it joins the residual path, whatever mixes.
TEST(UniformAverage, DropoutSitsBetweenTheMeanAndTheResidual) {
  Tensor x = random_tensor({2, 6, 8}, 1), onto = random_tensor({2, 6, 8}, 2);
  UniformAverage average{3, 0.5};
  EXPECT_EQ(average(x, Pass{}).to_vector(), UniformAverage{}(x, Pass{}).to_vector());
  Pass pass;
  pass.training = true, pass.seed = 1, pass.step = 4;
  const std::vector<float> mean = average(x, Pass{}).to_vector(), kept = average(x, pass).to_vector();
  int64_t zeros = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    zeros += kept[i] == 0;
    EXPECT_TRUE(kept[i] == 0 || kept[i] == 2 * mean[i]) << i;
  }
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, static_cast<int64_t>(kept.size()));
  EXPECT_EQ(average(x, pass, onto).to_vector(), (onto + average(x, pass)).to_vector());
}

TEST(UniformAverage, IsTheMeanOfThePrefix) {
  Tensor x = random_tensor({2, 7, 5}, 1);
  const std::vector<float> y = UniformAverage{}(x, Pass{}).to_vector();
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 7; ++t)
      for (int64_t c = 0; c < 5; ++c) {
        double sum = 0;
        for (int64_t j = 0; j <= t; ++j) sum += x.row(b * 7 + j)[c];
        EXPECT_NEAR(y[static_cast<size_t>((b * 7 + t) * 5 + c)], sum / static_cast<double>(t + 1), 8 * kEps * 4);
      }
  const std::vector<float> added = UniformAverage{}(x, Pass{}, x).to_vector(), sum = (x + prefix_mean(x)).to_vector();
  EXPECT_EQ(added, sum);
}

}  // namespace
}  // namespace bary
