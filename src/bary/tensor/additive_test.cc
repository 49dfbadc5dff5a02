// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/additive.h"

#include "bary/base/error.h"
#include "bary/base/parallel.h"
#include "bary/tensor/gradient_check_test.h"
#include "bary/tensor/parameters.h"

namespace bary {
namespace {

Doubles scores_of(const std::vector<Doubles>& in, int64_t B) {
  const size_t A = in[2].size(), T = in[0].size() / A / static_cast<size_t>(B),
               S = in[1].size() / A / static_cast<size_t>(B);
  Doubles y;
  for (size_t r = 0; r < static_cast<size_t>(B) * T; ++r) {
    for (size_t j = 0; j < S; ++j) {
      double sum = 0;
      for (size_t a = 0; a < A; ++a) sum += in[2][a] * std::tanh(in[0][r * A + a] + in[1][(r / T * S + j) * A + a]);
      y.push_back(sum);
    }
  }
  return y;
}

TEST(Additive, ValuesAndGradientsFollowTheFormula) {
  for (const auto& [T, S, A] : {std::array<int64_t, 3>{1, 1, 1}, {3, 1, 5}, {1, 4, 17}, {2, 3, 33}}) {
    check_op({"additive_scores",
              {{2, T, A}, {2, S, A}, {A}},
              [](auto& in) { return additive_scores(in[0], in[1], in[2]); },
              [](auto& in) { return scores_of(in, 2); },
              static_cast<double>(A + 2 * T * S)});
  }
}

TEST(Additive, QueriesThatAreTheKeys) {
  check_op({"of itself",
            {{2, 3, 5}, {5}},
            [](auto& in) { return additive_scores(in[0], in[0], in[1]); },
            [](auto& in) {
              return scores_of({in[0], in[0], in[1]}, 2);
            },
            16});
}

Floats run(int64_t B, int64_t T, int64_t S, int64_t A) {
  Tensor q = random_tensor({B, T, A}, 1).require_grad(), k = random_tensor({B, S, A}, 2).require_grad(),
         v = random_tensor({A}, 3).require_grad();
  Tape tape;
  Tensor y = additive_scores(q, k, v);
  Floats out = y.to_vector();
  tape.backward(sum(y * random_tensor(y.shape(), 4)));
  for (const Tensor& t : {q, k, v}) kernel::append(out, t.grad_vector());
  return out;
}

TEST(Additive, SameBitsOnThreadsAndInstructionSets) {
  set_threads(1);
  const Floats one = kernel::on_every_isa("additive", [] { return run(5, 4, 6, 35); });
  for (int n : {2, 3}) {
    set_threads(n);
    expect_same_bits(run(5, 4, 6, 35), one, std::to_string(n) + " threads");
  }
  set_threads(0);
}

// The gradient of v is summed in the tape's groups of sequences.
TEST(Additive, GroupsOfSequences) {
  const int64_t B = 6, T = 3, S = 4, A = 20;
  const Floats q = normals(B * T * A, 1), k = normals(B * S * A, 2);
  Parameters p(1);
  const Tensor v = p.add("v", {A}, Role::matrix, {Init::Kind::uniform, 1});
  auto gradient = [&](int64_t b, int64_t count, TapeGroups groups) {
    Floats g(static_cast<size_t>(p.size()), 0.0f);
    Tape tape(g.data(), 0, groups);
    auto part = [&](const Floats& x, int64_t n) {
      return Tensor::from({count, n, A},
                          std::span(x).subspan(static_cast<size_t>(b * n * A), static_cast<size_t>(count * n * A)));
    };
    tape.backward(sum(additive_scores(part(q, T), part(k, S), v)));
    return g;
  };
  Floats by_hand = gradient(0, 2, {});
  for (int64_t b : {2, 4}) {
    const Floats more = gradient(b, 2, {});
    for (size_t i = 0; i < more.size(); ++i) by_hand[i] += more[i];
  }
  expect_same_bits(gradient(0, 6, {2, 6}), by_hand, "groups");
}

TEST(Additive, MistakesAreNamed) {
  const Tensor q({2, 3, 4}), k({2, 5, 4}), v({4});
  EXPECT_THROW(additive_scores(Tensor({3, 4}), k, v), Error);
  EXPECT_THROW(additive_scores(q, Tensor({1, 5, 4}), v), Error);
  EXPECT_THROW(additive_scores(q, Tensor({2, 5, 3}), v), Error);
  EXPECT_THROW(additive_scores(q, k, Tensor({5})), Error);
}

}  // namespace
}  // namespace bary
