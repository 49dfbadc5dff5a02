// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/attention_case_test.h"

namespace bary::kernel {
namespace {

// dq, dk and dv, added to `start`
std::vector<float> gradients(const AttentionCase& c, bool keep_pattern, float start = 0) {
  const AttentionHead& h = c.h;
  AttentionRun run(c, keep_pattern);
  Matrix scratch(1, attention_backward_scratch(h.D));
  Matrix out(h.T, h.D, c.dout.ld());
  out.set([&](int64_t t, int64_t d) { return run.out(t, d); });
  Matrix dq(h.T, h.D, h.D + 4), dk(h.S, h.D, h.D + 4), dv(h.S, h.D, h.D + 4);
  for (Matrix* m : {&dq, &dk, &dv}) m->fill(start);
  AttentionInputs in{c.q.data(), c.k.data(), c.v.data(), c.q.ld(), c.k.ld(), out.data(), c.dout.data(), c.dout.ld()};
  attention_backward(h, in, run.kept, {dq.data(), dk.data(), dv.data(), dq.ld(), dk.ld()}, scratch.data());
  std::vector<float> all;
  for (Matrix* m : {&dq, &dk, &dv}) {
    EXPECT_TRUE(m->gaps_untouched());
    append(all, m->values());
  }
  return all;
}

void expect_right(const AttentionHead& h, float start = 0) {
  AttentionCase c(h);
  std::vector<float> got = on_every_isa(c.str(), [&] { return gradients(c, false, start); });
  if (h.S <= kKeyBlock)  // the stored pattern is the recomputed one, so the gradients are the same
    expect_same_bits(on_every_isa(c.str(), [&] { return gradients(c, true, start); }), got, "kept pattern, " + c.str());
  auto want = reference::attention_backward(h, c.q.doubles(), c.k.doubles(), c.v.doubles(), c.dout.doubles());
  std::vector<double> all = want.dq;
  all.insert(all.end(), want.dk.begin(), want.dk.end());
  all.insert(all.end(), want.dv.begin(), want.dv.end());
  for (double& x : all) x += static_cast<double>(start);
  // a term is p (g v - delta) k scale; p is off by the score's error, and up to T (or S) terms are added
  const double g = largest(c.dout.doubles()), other = std::max({largest(c.k.doubles()), largest(c.q.doubles()), 1.0});
  const double terms = std::sqrt(static_cast<double>(std::max(h.T, h.S)));
  const double slope =
      1 + 2 * static_cast<double>(h.scale) * other * largest(c.v.doubles()) * std::sqrt(static_cast<double>(h.D));
  const double times = h.dropout.p > 0 ? 1 / (1 - static_cast<double>(h.dropout.p)) : 1;
  expect_close(got, all, kEps * (c.score_size() + terms + 8) * g * slope * times, c.str());
}

TEST(AttentionBackward, TheReferenceIsTheGradientOfTheReference) {
  AttentionHead h = with_dropout(head_of(6, 3, true, 4), 0.3f);
  h.slope = 0.2f;
  AttentionCase c(h);
  std::vector<double> q = c.q.doubles(), k = c.k.doubles(), v = c.v.doubles(), g = c.dout.doubles();
  auto loss = [&] {
    std::vector<double> out = reference::attention(h, q, k, v).out;
    double s = 0;
    for (size_t i = 0; i < out.size(); ++i) s += out[i] * g[i];
    return s;
  };
  auto want = reference::attention_backward(h, q, k, v, g);
  std::pair<std::vector<double>*, std::vector<double>*> pairs[] = {{&q, &want.dq}, {&k, &want.dk}, {&v, &want.dv}};
  for (auto& [x, dx] : pairs) {
    for (size_t i = 0; i < x->size(); ++i) {
      const double was = (*x)[i], step = 1e-5;
      (*x)[i] = was + step;
      const double up = loss();
      (*x)[i] = was - step;
      const double down = loss();
      (*x)[i] = was;
      EXPECT_NEAR((up - down) / (2 * step), (*dx)[i], 1e-8);
    }
  }
}

TEST(AttentionBackward, EveryLengthUnderEveryMask) {
  for (int64_t T : kLengths) {
    expect_right(head_of(T, 16));
    expect_right(head_of(T, 8, false));
    for (int64_t window : {1, 5, 70, 300}) expect_right(head_of(T, 4, true, window));
  }
}

TEST(AttentionBackward, EveryWidth) {
  for (int64_t D : kWidths) {
    expect_right(head_of(70, D), 0.5f);
    expect_right(head_of(70, D, false));
    expect_right(head_of(262, D, true, 40));
  }
}

TEST(AttentionBackward, SlopeNoScaleAndDropout) {
  for (int64_t T : kSlowBuild ? std::vector<int64_t>{7, 270} : std::vector<int64_t>{7, 65, 300}) {
    for (int64_t window : {0, 40}) {
      AttentionHead h = head_of(T, 20, true, window);
      h.slope = 0.25f;
      expect_right(h);
      expect_right(with_dropout(h, 0.3f));
      h.slope = 0;
      h.scale = 1;
      expect_right(h);
    }
    expect_right(with_dropout(head_of(T, 16, false), 0.1f));
  }
}

TEST(AttentionBackward, APrefixIsSeenByEveryQuery) {
  for (const AttentionHead& h : heads_with_a_prefix()) expect_right(h);
}

TEST(AttentionBackward, FewerOrMoreKeysThanQueries) {
  for (int64_t S : {1, 17, 300}) {
    AttentionHead h = head_of(9, 16, false);
    h.S = S;
    expect_right(h);
  }
}

}  // namespace
}  // namespace bary::kernel
