// SPDX-License-Identifier: Apache-2.0
#include "bary/train/adamw.h"

#include <limits>

#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

struct Fixture {
  explicit Fixture(AdamWOptions o = {}) : model(small_model(), 3), adamw(model.parameters(), o), start(values(model)) {}
  std::vector<float> gradient(float fill) const { return std::vector<float>(start.size(), fill); }
  LanguageModel model;
  AdamW adamw;
  std::vector<float> start;
};

// One number, as torch.optim.AdamW updates it, in double.
struct Reference {
  double p, m = 0, v = 0;
  void step(double g, double lr, double decay, int t) {
    p *= 1 - lr * decay;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= lr / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
  }
};

TEST(AdamW, FollowsTheFormula) {
  Fixture f;
  std::vector<Reference> want;
  for (float p : f.start) want.push_back({p});
  for (int t = 1; t <= 5; ++t) {
    RandomStream random(2, Purpose::test, static_cast<uint64_t>(t));
    std::vector<float> g(f.start.size());
    for (float& x : g) x = static_cast<float>(random.normal());
    const double lr = 1e-3 * t;
    ASSERT_TRUE(f.adamw.step(g.data(), 10, lr).finite);
    for (size_t i = 0; i < g.size(); ++i) want[i].step(g[i] / 10.0, lr, 0.01, t);
  }
  EXPECT_EQ(f.adamw.updates(), 5);
  const std::vector<float> got = values(f.model);
  // five roundings of p, and of steps of at most 5e-3 with some ten roundings in each
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i].p, 0x1p-24 * (6 * std::fabs(want[i].p) + 10 * 15e-3)) << i;
}

TEST(AdamW, WithoutGradientOnlyTheDecayMoves) {  // matrices shrink by lr wd, gains and biases stay exactly
  for (DecayGroup group : {DecayGroup::all, DecayGroup::matrices, DecayGroup::linear}) {
    AdamWOptions o;
    o.weight_decay = 0.1, o.decay = group;
    Fixture f(o);
    f.adamw.step(f.gradient(0).data(), 1, 0.5);
    for (const Parameter& p : f.model.parameters().list()) {
      const bool shrinks = group == DecayGroup::all || p.role == Role::matrix ||
                           (p.role == Role::embedding && group == DecayGroup::matrices);
      auto v = f.model.parameters().values_of(p);
      for (size_t i = 0; i < v.size(); ++i) {
        const float was = f.start[static_cast<size_t>(p.offset) + i];
        ASSERT_EQ(v[i], shrinks ? was * 0.95f : was) << p.name;
      }
    }
  }
}

TEST(AdamW, TheFirstStepIsTheSign) {  // |update| = lr g / (|g| + eps), whatever the size of the gradient
  for (float size : {1e-3f, 1.0f, 1e6f}) {
    AdamWOptions o;
    o.weight_decay = 0;
    Fixture f(o);
    f.adamw.step(f.gradient(-size).data(), 1, 0.01);
    const std::vector<float> now = values(f.model);
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i] - f.start[i], 0.01, 0.01 * 1e-4) << size;
  }
}

TEST(AdamW, DividesBySumsOfTokens) {  // the gradient is a sum: twice the sum over twice the tokens is the same step
  Fixture a, b;
  a.adamw.step(a.gradient(0.25f).data(), 8, 1e-3);
  b.adamw.step(b.gradient(0.5f).data(), 16, 1e-3);
  EXPECT_EQ(values(a.model), values(b.model));
}

TEST(AdamW, NormIsOfAllParametersTogether) {
  Fixture f;
  const auto n = static_cast<double>(f.start.size());
  EXPECT_NEAR(f.adamw.step(f.gradient(3).data(), 2, 1e-3).norm, 1.5 * std::sqrt(n), 1e-5 * std::sqrt(n));
}

TEST(AdamW, ClippingScalesByTheGlobalNorm) {
  AdamWOptions clip;
  clip.grad_clip = 1;
  Fixture f(clip), small(clip), off;
  RandomStream random(2, Purpose::test);
  std::vector<float> g(f.start.size());
  for (float& x : g) x = static_cast<float>(random.normal());
  const double norm = f.adamw.step(g.data(), 1, 1e-3).norm;
  ASSERT_GT(norm, 10) << "otherwise nothing is clipped";
  for (size_t i = 0; i < g.size(); ++i)  // torch.nn.utils.clip_grad_norm_ adds 1e-6 to the norm
    ASSERT_NEAR(f.adamw.moment1()[i], 0.1 * g[i] / (norm + 1e-6), 1e-6 * 0.1 / norm * 4) << i;
  // a gradient below the limit is left alone, and 0 means no limit
  for (float& x : g) x *= 1e-3f;
  small.adamw.step(g.data(), 1, 1e-3);
  off.adamw.step(g.data(), 1, 1e-3);
  EXPECT_EQ(values(small.model), values(off.model));
}

TEST(AdamW, ANotFiniteGradientChangesNothing) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3e38f}) {
    Fixture f;
    f.adamw.step(f.gradient(0.1f).data(), 1, 1e-3);
    const std::vector<float> before = values(f.model);
    const std::vector<float> m(f.adamw.moment1(), f.adamw.moment1() + before.size());
    const std::vector<float> v(f.adamw.moment2(), f.adamw.moment2() + before.size());
    std::vector<float> g = f.gradient(0.1f);
    g[g.size() / 2] = g[3] = bad;  // 3e38 twice: the norm overflows
    EXPECT_FALSE(f.adamw.step(g.data(), 1, 1e-3).finite);
    EXPECT_EQ(values(f.model), before);
    EXPECT_EQ(f.adamw.updates(), 1);
    EXPECT_TRUE(std::equal(m.begin(), m.end(), f.adamw.moment1()));
    EXPECT_TRUE(std::equal(v.begin(), v.end(), f.adamw.moment2()));
  }
}

TEST(AdamW, NoTargetsIsNoStep) {
  Fixture f;
  EXPECT_TRUE(f.adamw.step(f.gradient(0).data(), 0, 1e-3).finite);
  EXPECT_EQ(values(f.model), f.start) << "not even the decay";
  EXPECT_EQ(f.adamw.updates(), 0);
}

TEST(AdamW, ThePackedWeightsFollow) {
  Fixture f;
  const std::vector<int32_t> ids = random_ids(8, 29);
  const std::vector<float> before = f.model.logits(ids, 1).to_vector();
  f.adamw.step(f.gradient(1).data(), 1, 0.1);
  const std::vector<float> after = f.model.logits(ids, 1).to_vector();
  EXPECT_NE(before, after);
  LanguageModel other(small_model(), 3);
  const std::vector<float> now = values(f.model);
  std::copy(now.begin(), now.end(), other.parameters().values());
  EXPECT_EQ(other.logits(ids, 1).to_vector(), after);
}

TEST(AdamW, FirstNotFiniteNamesTheFirst) {
  Fixture f;
  std::vector<float> v = f.start;
  EXPECT_EQ(first_not_finite(f.model.parameters(), v.data()), "");
  v.back() = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_not_finite(f.model.parameters(), v.data()), "lm_head.bias");
  v[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_not_finite(f.model.parameters(), v.data()), "transformer.wte.weight");
}

}  // namespace
}  // namespace bary
