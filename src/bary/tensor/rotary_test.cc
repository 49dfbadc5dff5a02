// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/rotary.h"

#include <cmath>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"
#include "bary/tensor/attention_formula_test.h"

namespace bary {
namespace {

RotaryOptions scaled(RopeScaling scaling, double factor, int64_t original = 64, double theta = 10000) {
  return {theta, scaling, factor, original};
}
void expect_row(const RotaryTable& a, int64_t t, const RotaryTable& b, int64_t u) {
  const int64_t half = a.D / 2;
  for (int64_t i = 0; i < half; ++i) {
    EXPECT_EQ(a.cosines.data()[t * half + i], b.cosines.data()[u * half + i]) << t << " " << i;
    EXPECT_EQ(a.sines.data()[t * half + i], b.sines.data()[u * half + i]) << t << " " << i;
  }
}

TEST(RopeScaling, NoneIsTheFormula) {
  const int64_t T = 40, D = 16;
  RotaryTable table(T, D, 500.0);
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t i = 0; i < D / 2; ++i) {
      const double angle = static_cast<double>(t) * portable::pow(500.0, -2.0 * static_cast<double>(i) / 16.0);
      EXPECT_EQ(table.cosines.data()[t * 8 + i], static_cast<float>(portable::cos(angle)));
      EXPECT_EQ(table.sines.data()[t * 8 + i], static_cast<float>(portable::sin(angle)));
    }
  }
}

TEST(RopeScaling, AFactorOfOneChangesNoBit) {
  RotaryTable plain(40, 16, 10000.0);
  for (RopeScaling s : {RopeScaling::linear, RopeScaling::ntk}) {
    RotaryTable table(40, 16, scaled(s, 1));
    for (int64_t t = 0; t < 40; ++t) expect_row(table, t, plain, t);
  }
  // yarn adds up two shares of a frequency: the last place may differ
  const auto f = rotary_frequencies(16, scaled(RopeScaling::yarn, 1)), g = rotary_frequencies(16, {});
  for (size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], g[i], 4e-16 * g[i]);
  EXPECT_EQ(rotary_temperature(scaled(RopeScaling::yarn, 1)), 1);
}

TEST(RopeScaling, LinearDividesPositions) {
  RotaryTable plain(40, 16, 10000.0), table(160, 16, scaled(RopeScaling::linear, 4));
  for (int64_t t = 0; t < 40; ++t) expect_row(table, 4 * t, plain, t);
}

TEST(RopeScaling, NtkRaisesTheBase) {
  // 1e4 * 3^(64/62)
  const auto f = rotary_frequencies(64, scaled(RopeScaling::ntk, 3)), g = rotary_frequencies(64, {31082.2367});
  for (size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], g[i], 1e-8 * g[i]);
  // so the fastest pair keeps its pace and the slowest is interpolated
  const auto plain = rotary_frequencies(64, {});
  EXPECT_EQ(f[0], plain[0]);
  EXPECT_NEAR(f[31], plain[31] / 3, 1e-14 * plain[31]);
}

// Values that public implementations of YaRN agree on for two published configurations
TEST(RopeScaling, YarnMeetsPublishedValues) {
  const RotaryOptions qwen = scaled(RopeScaling::yarn, 4, 32768, 1e6);
  const auto f = rotary_frequencies(128, qwen), plain = rotary_frequencies(128, {1e6});
  EXPECT_NEAR(rotary_temperature(qwen), 1.138629436, 1e-9);
  EXPECT_NEAR(f[30], 1.064361e-3, 1e-9);
  EXPECT_NEAR(f[63], 3.102344e-7, 1e-13);
  for (size_t i = 0; i <= 23; ++i) EXPECT_EQ(f[i], plain[i]) << i;      // turn 32 times and more in the old window
  for (size_t i = 40; i < 64; ++i) EXPECT_EQ(f[i], plain[i] / 4) << i;  // not once
  for (size_t i = 24; i < 40; ++i) EXPECT_TRUE(f[i] < plain[i] && f[i] > plain[i] / 4) << i;
  EXPECT_NEAR(rotary_temperature(scaled(RopeScaling::yarn, 1.5625)), 1.044628710262842, 1e-15);
}

TEST(RopeScaling, YarnOfATinyWindowIsAStep) {  // no pair turns even once in it
  const auto f = rotary_frequencies(8, scaled(RopeScaling::yarn, 2, 1)), plain = rotary_frequencies(8, {});
  EXPECT_EQ(f[0], plain[0]);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(f[i], plain[i] / 2);
}

// A score still depends on the distance alone, and both ways of computing attention scale q and k alike.
TEST(RopeScaling, AttentionTurnsByTheTable) {
  const int64_t T = 50, D = 8;
  for (RopeScaling s : {RopeScaling::linear, RopeScaling::ntk, RopeScaling::yarn}) {
    RotaryTable table(T, D, scaled(s, 4, 12));
    const double size = rotary_temperature(scaled(s, 4, 12));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t i = 0; i < D / 2; ++i)
        EXPECT_NEAR(std::hypot(table.cosines.data()[t * 4 + i], table.sines.data()[t * 4 + i]), size, 1e-6);
    AttentionOptions o;
    o.heads = 2;
    o.rotary = &table;
    Floats out[2], gradient[2];
    for (int definition : {0, 1}) {
      Tensor x = random_tensor({1, T, 6 * D}, 1).require_grad();
      Tape tape;
      Tensor y = definition ? attention_by_definition(x, o) : attention(x, o);
      tape.backward(sum(y * random_tensor(y.shape(), 2)));
      out[definition] = y.to_vector(), gradient[definition] = x.grad_vector();
    }
    expect_close(out[0], doubles(out[1]), 1e-5, "out");
    expect_close(gradient[0], doubles(gradient[1]), 1e-4, "gradient");
  }
}

TEST(RopeScaling, RefusesWhatHasNoMeaning) {
  auto refused = [](int64_t D, const RotaryOptions& o) { EXPECT_THROW(rotary_frequencies(D, o), Error); };
  refused(5, {});
  refused(0, {});
  refused(8, scaled(RopeScaling::linear, 0.5));
  refused(8, scaled(RopeScaling::linear, std::nan("")));
  refused(8, scaled(RopeScaling::ntk, HUGE_VAL));
  refused(2, scaled(RopeScaling::ntk, 2));
  refused(8, scaled(RopeScaling::yarn, 2, 0));
  refused(8, scaled(RopeScaling::yarn, 2, 64, 1));
  EXPECT_NO_THROW(rotary_frequencies(2, scaled(RopeScaling::linear, 2)));
}

}  // namespace
}  // namespace bary
