// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/optimizer.h"

#include "bary/kernel/checks_test.h"

namespace bary::kernel {
namespace {

struct State {
  explicit State(int64_t n) : g(random_matrix(1, n, n, 1)), p(random_matrix(1, n, n, 2)), m(1, n), v(1, n) {
    m.fill(0);
    v.fill(0);
  }
  std::vector<float> values() const {
    std::vector<float> out = p.values();
    append(out, m.values());
    append(out, v.values());
    return out;
  }
  Matrix g, p, m, v;
};

AdamW options(int64_t t, double decay) {
  AdamW o;
  o.gradient_scale = 0.25f;
  o.learning_rate = 1e-3f;
  o.decay = static_cast<float>(decay);
  o.correction1 = static_cast<float>(1 - std::pow(0.9, static_cast<double>(t)));
  o.sqrt_correction2 = static_cast<float>(std::sqrt(1 - std::pow(0.999, static_cast<double>(t))));
  return o;
}

TEST(AdamW, TenStepsFollowDouble) {
  for (int64_t n : kSizes) {
    const size_t size = static_cast<size_t>(n);
    std::vector<double> p, m(size, 0), v(size, 0);
    State start(n);
    p = start.p.doubles();
    for (int64_t t = 1; t <= 10; ++t) {
      Matrix g = random_matrix(1, n, n, static_cast<uint64_t>(10 + t));
      for (size_t i = 0; i < size; ++i) {  // PyTorch's order: decay, moments, corrected step
        double gi = 0.25 * static_cast<double>(g(0, static_cast<int64_t>(i)));
        p[i] *= 1 - 1e-3 * 0.01;
        m[i] = 0.9 * m[i] + 0.1 * gi;
        v[i] = 0.999 * v[i] + 0.001 * gi * gi;
        double dt = static_cast<double>(t);
        p[i] -= 1e-3 / (1 - std::pow(0.9, dt)) * m[i] / (std::sqrt(v[i]) / std::sqrt(1 - std::pow(0.999, dt)) + 1e-8);
      }
    }
    std::vector<float> got = on_every_isa("adamw", [&] {
      State s(n);
      for (int64_t t = 1; t <= 10; ++t) {
        s.g.random(static_cast<uint64_t>(10 + t));
        adamw(options(t, 0.01), n, s.g.data(), s.p.data(), s.m.data(), s.v.data());
      }
      return s.values();
    });
    // 0.1 and 0.001 come from 1 - beta in float, off by eps/2 of 1: relative 5e-7 and 6e-5 of the moments
    for (size_t i = 0; i < size; ++i) {
      ASSERT_TRUE(std::fabs(got[i] - p[i]) <= 10 * (kEps * std::fabs(p[i]) + 1e-3 * 1e-4)) << i;
      ASSERT_TRUE(std::fabs(got[size + i] - m[i]) <= 20 * kEps) << i;
      ASSERT_TRUE(std::fabs(got[2 * size + i] - v[i]) <= 1e-4 * v[i] + 1e-12) << i;
    }
  }
}

TEST(AdamW, AnySplitGivesTheSameBits) {
  const int64_t n = 333;
  State whole(n), split(n);
  adamw(options(3, 0.1), n, whole.g.data(), whole.p.data(), whole.m.data(), whole.v.data());
  for (int64_t i = 0; i < n; i += 50)
    adamw(options(3, 0.1), std::min<int64_t>(50, n - i), split.g.data() + i, split.p.data() + i, split.m.data() + i,
          split.v.data() + i);
  expect_same_bits(split.values(), whole.values(), "split");
}

// Without a gradient, what decays shrinks by exactly lr decay and what does not stays.
TEST(AdamW, DecayAlone) {
  const int64_t n = 70;
  for (double decay : {0.0, 0.1}) {
    State s(n);
    std::vector<float> before = s.p.values();
    s.g.fill(0);
    adamw(options(1, decay), n, s.g.data(), s.p.data(), s.m.data(), s.v.data());
    const float keep = 1.0f - 1e-3f * static_cast<float>(decay);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(s.p.values()[i], before[i] * keep);
  }
}

TEST(SquaredNorm, AgainstDoubleAndNotFinite) {
  for (int64_t n : {0, 1, 15, 16, 17, 4095, 4096}) {
    Matrix x = random_matrix(1, n, n, 1);
    double want = 0, got = 0;
    for (double v : x.doubles()) want += v * v;
    on_every_isa("squared_norm", [&] {
      got = squared_norm(x.data(), n);
      return std::vector<float>{static_cast<float>(got)};
    });
    EXPECT_TRUE(std::fabs(got - want) <=
                4 * kEps * std::sqrt(n) * want / std::max<double>(1, std::sqrt(n)) + kEps * want)
        << n;
    if (n == 0) continue;
    x(0, n - 1) = NAN;
    EXPECT_TRUE(std::isnan(squared_norm(x.data(), n)));
    x(0, n - 1) = -HUGE_VALF;
    EXPECT_EQ(squared_norm(x.data(), n), HUGE_VAL);
  }
}

TEST(AddInOrder, OneAfterTheOther) {
  for (int64_t n : kSizes) {
    for (int64_t parts : {0, 1, 2, 9}) {
      std::vector<Matrix> held;
      std::vector<const float*> pointers;
      for (int64_t i = 0; i < parts; ++i) {
        held.push_back(random_matrix(1, n, n, static_cast<uint64_t>(i + 1), std::pow(10.0, i % 4)));
        pointers.push_back(held.back().data());
      }
      Matrix start = random_matrix(1, n, n, 77);
      std::vector<float> want = start.values();
      for (const Matrix& part : held)
        for (int64_t i = 0; i < n; ++i) want[static_cast<size_t>(i)] = want[static_cast<size_t>(i)] + part(0, i);
      std::vector<float> got = on_every_isa("add_in_order", [&] {
        Matrix sum = random_matrix(1, n, n, 77);
        add_in_order(pointers, n, sum.data());
        return sum.values();
      });
      expect_same_bits(got, want, std::to_string(parts) + " parts of " + std::to_string(n));
    }
  }
}

}  // namespace
}  // namespace bary::kernel
