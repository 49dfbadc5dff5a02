// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/additive.h"

#include "bary/kernel/checks_test.h"

namespace bary::kernel {
namespace {

using Doubles = std::vector<double>;

// scores (T,S) in double from dense q, k, v
Doubles scores_of(const Doubles& q, const Doubles& k, const Doubles& v) {
  const size_t A = v.size();
  Doubles s;
  for (size_t t = 0; t < q.size() / A; ++t) {
    for (size_t j = 0; j < k.size() / A; ++j) {
      double sum = 0;
      for (size_t a = 0; a < A; ++a) sum += v[a] * std::tanh(q[t * A + a] + k[j * A + a]);
      s.push_back(sum);
    }
  }
  return s;
}

struct Got {
  std::vector<float> scores, dq, dk, sum;
};
Got run(int64_t T, int64_t S, int64_t A) {
  const Matrix q = random_matrix(T, A, A + 1, 1), k = random_matrix(S, A, A + 2, 2), v = random_matrix(1, A, A, 3),
               ds = random_matrix(T, S, S + 3, 4);
  const AdditiveInputs in{T, S, A, {q.data(), q.ld()}, {k.data(), k.ld()}, v.data()};
  Matrix s(T, S, S + 1), dq(T, A, A + 3), dk(S, A, A + 4), sum(T, A, A + 5);
  additive_scores(in, {s.data(), s.ld()});
  additive_scores_backward(in, {ds.data(), ds.ld()},
                           {{dq.data(), dq.ld()}, {dk.data(), dk.ld()}, {sum.data(), sum.ld()}});
  EXPECT_TRUE(s.gaps_untouched() && dq.gaps_untouched() && dk.gaps_untouched() && sum.gaps_untouched());
  return {s.values(), dq.values(), dk.values(), sum.values()};
}

TEST(Additive, ScoresAndGradientsFollowTheirFormula) {
  for (auto [T, S] : {std::array<int64_t, 2>{1, 1}, {2, 5}, {4, 3}}) {
    for (int64_t A : kSizes) {
      SCOPED_TRACE(std::to_string(T) + " queries, " + std::to_string(S) + " keys, " + std::to_string(A) + " channels");
      Got got;
      on_every_isa("additive", [&, T = T, S = S] {
        got = run(T, S, A);
        std::vector<float> all = got.scores;
        for (const auto* part : {&got.dq, &got.dk, &got.sum}) append(all, *part);
        return all;
      });
      Doubles q = random_matrix(T, A, A, 1).doubles(), k = random_matrix(S, A, A, 2).doubles(),
              v = random_matrix(1, A, A, 3).doubles();
      const Doubles ds = random_matrix(T, S, S, 4).doubles(), want = scores_of(q, k, v);
      const double n = std::sqrt(static_cast<double>(A));
      expect_close(got.scores, want, 4 * kEps * n * std::max(1.0, largest(want)), "scores");
      auto slopes = [&](Doubles& x) {
        Doubles g;
        for (double& value : x) {
          const double was = value, h = 1e-5;
          value = was + h;
          const Doubles up = scores_of(q, k, v);
          value = was - h;
          const Doubles down = scores_of(q, k, v);
          value = was;
          double sum = 0;
          for (size_t i = 0; i < ds.size(); ++i) sum += ds[i] * (up[i] - down[i]);
          g.push_back(sum / (2 * h));
        }
        return g;
      };
      const Doubles dq = slopes(q), dk = slopes(k), dv = slopes(v);
      expect_close(got.dq, dq, 8 * kEps * static_cast<double>(S) * std::max(1.0, largest(dq)), "dq");
      expect_close(got.dk, dk, 8 * kEps * static_cast<double>(T) * std::max(1.0, largest(dk)), "dk");
      std::vector<float> total(static_cast<size_t>(A));
      for (size_t i = 0; i < got.sum.size(); ++i) total[i % total.size()] += got.sum[i];
      expect_close(total, dv, 8 * kEps * static_cast<double>(T * S) * std::max(1.0, largest(dv)), "dv");
    }
  }
}

// A row of scores knows its own query only, a column its own key: what stands beside them changes nothing.
TEST(Additive, NeighboursChangeNothing) {
  const int64_t A = 21;
  const Matrix q = random_matrix(3, A, A, 1), k = random_matrix(6, A, A, 2), v = random_matrix(1, A, A, 3);
  Matrix all(3, 6), one(1, 1);
  additive_scores({3, 6, A, {q.data(), A}, {k.data(), A}, v.data()}, {all.data(), 6});
  for (int64_t t = 0; t < 3; ++t) {
    for (int64_t j = 0; j < 6; ++j) {
      additive_scores({1, 1, A, {q.data() + t * A, A}, {k.data() + j * A, A}, v.data()}, {one.data(), 1});
      EXPECT_EQ(one(0, 0), all(t, j));
    }
  }
}

}  // namespace
}  // namespace bary::kernel
