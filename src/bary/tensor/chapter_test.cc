// SPDX-License-Identifier: Apache-2.0
// What the theory says of averages, scores, masks and positions, shown on the operations that compute them.
#include <algorithm>
#include <numeric>

#include "bary/kernel/rows.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

// rows of x in another order
Tensor shuffled(const Tensor& x, const std::vector<int64_t>& order) {
  Tensor y(x.shape());
  for (int64_t r = 0; r < x.rows(); ++r) std::copy_n(x.row(order[static_cast<size_t>(r)]), x.channels(), y.row(r));
  return y;
}
// a permutation of 0 .. n-1 that leaves the last `fixed` where they are
std::vector<int64_t> permutation(int64_t n, int64_t fixed, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, Purpose::test);
  for (int64_t i = n - fixed - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[random.below(static_cast<uint64_t>(i + 1))]);
  return order;
}
double distance(const float* a, const float* b, int64_t n) {
  double d = 0;
  for (int64_t i = 0; i < n; ++i) d = std::max(d, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return d;
}

TEST(Average, IsBlindToTheOrderOfItsPrefix) {
  const int64_t T = 64, C = 32;
  Tensor x = random_tensor({1, T, C}, 1), mixed = shuffled(x, permutation(T, 1, 2));
  ASSERT_GT(distance(x.row(0), mixed.row(0), C), 0.1);
  double moved = distance(prefix_mean(x).row(T - 1), prefix_mean(mixed).row(T - 1), C);
  EXPECT_LE(moved, 2 * kEps * std::sqrt(T));
  EXPECT_GT(moved, 0);  // the noise of another order of additions
}

TEST(Average, ThreeWaysToTheSameNumbers) {
  const int64_t T = 48, C = 20;
  Tensor x = random_tensor({1, T, C}, 1), triangle = Tensor::zeros({1, T, T});
  for (int64_t t = 0; t < T; ++t) std::fill_n(triangle.row(t), t + 1, 1.0f / static_cast<float>(t + 1));
  Tensor weights = softmax(masked(Tensor::zeros({1, T, T}), Mask::causal));
  Tensor loop = prefix_mean(x), product = matmul(triangle, x), soft = matmul(weights, x);
  for (int64_t t = 0; t < T; ++t) {
    EXPECT_LE(distance(loop.row(t), product.row(t), C), 2 * kEps * std::sqrt(t + 1)) << t;
    EXPECT_LE(distance(product.row(t), soft.row(t), C), 2 * kEps * std::sqrt(t + 1)) << t;
  }
  std::string rows;
  for (int64_t t = 0; t < 6; ++t)
    rows += fmt::format("{:.3f} x{} ", weights.row(t)[t / 2],
                        std::count_if(weights.row(t), weights.row(t) + T, [](float w) { return w > 0; }));
  EXPECT_EQ(rows, "1.000 x1 0.500 x2 0.333 x3 0.250 x4 0.200 x5 0.167 x6 ");
}

TEST(Average, PositionHundredIsOneHundredthOfItsSummary) {
  Tensor x = Tensor::zeros({1, 100, 1});
  x.row(99)[0] = 1;
  EXPECT_FLOAT_EQ(prefix_mean(x).row(99)[0], 0.01f);
}

TEST(Mask, MinusInfinityGivesExactZeros) {
  const int64_t T = 70;
  Tensor p = softmax(masked(random_tensor({1, T, T}, 1, 1000), Mask::causal));
  for (int64_t t = 0; t < T; ++t) {
    double total = 0;
    for (int64_t j = 0; j < T; ++j) {
      ASSERT_TRUE(j <= t || p.row(t)[j] == 0);
      total += static_cast<double>(p.row(t)[j]);
    }
    EXPECT_NEAR(total, 1, 4 * kEps);
  }
}

// Entries of variance 1: a score has variance d, which is why attention divides by its root.
TEST(Scores, VarianceIsTheWidth) {
  for (auto [d, queries, keys, bound] : {std::tuple<int64_t, int64_t, int64_t, double>{4, 20000, 1, 0.08},
                                         {16, 20000, 1, 0.08},
                                         {64, 20000, 1, 0.08},
                                         {256, 200, 100, 0.12},
                                         {1024, 200, 100, 0.12}}) {
    // few wide vectors are paired each with each; narrow ones are all drawn anew
    const bool each = keys > 1;
    Tensor q = each ? random_tensor({1, queries, d}, 1) : random_tensor({queries, 1, d}, 1);
    Tensor k = each ? random_tensor({1, keys, d}, 2) : random_tensor({queries, 1, d}, 2);
    Floats scores = matmul_nt(q, k).to_vector();
    ASSERT_EQ(scores.size(), 20000u);
    double mean = 0, square = 0;
    for (float s : scores) mean += s / 20000.0, square += static_cast<double>(s) * static_cast<double>(s) / 20000;
    const double variance = square - mean * mean, width = static_cast<double>(d);
    EXPECT_NEAR(variance, width, bound * width);
  }
}

struct Heads {
  AttentionOptions options;
  Tensor operator()(const Tensor& qkv) const { return attention(qkv, options); }
};

// Attention(P X) = P Attention(X) without a mask and without positions
TEST(Equivariance, AttentionIsASetOperationUntilPositionsAreAdded) {
  const int64_t T = 30, D = 8, H = 2;
  Tensor x = random_tensor({1, T, 3 * H * D}, 1);
  std::vector<int64_t> order = permutation(T, 0, 3);
  Tensor mixed = shuffled(x, order);
  RotaryTable table(T, D, 10000);
  auto gap = [&](AttentionOptions o) {
    o.heads = H;
    Heads f{o};
    Tensor a = shuffled(f(x), order), b = f(mixed);
    double most = 0;
    for (int64_t t = 0; t < T; ++t) most = std::max(most, distance(a.row(t), b.row(t), H * D));
    return most;
  };
  AttentionOptions set, causal, rotary, slopes;
  set.mask = rotary.mask = slopes.mask = Mask::full;
  rotary.rotary = &table;
  slopes.alibi = true;
  EXPECT_LE(gap(set), 4 * kEps * std::sqrt(T) * 4);
  EXPECT_GT(gap(causal), 0.1);
  EXPECT_GT(gap(rotary), 0.1);
  EXPECT_GT(gap(slopes), 0.1);
}

// One masked layer reads its prefix as a bag; a second one sees rows that know how much stood before them.
TEST(Equivariance, OneCausalLayerIsBlindToOrderAndTwoAreNot) {
  const int64_t T = 20, D = 8;
  Tensor x = random_tensor({1, T, D}, 1), mixed = shuffled(x, permutation(T, 1, 5));
  auto layer = [](const Tensor& in) { return attention(concat(std::array{in, in, in}), {}); };
  Tensor one = layer(x), one_mixed = layer(mixed), two = layer(one), two_mixed = layer(one_mixed);
  EXPECT_LE(distance(one.row(T - 1), one_mixed.row(T - 1), D), 8 * kEps * std::sqrt(T));
  EXPECT_GT(distance(two.row(T - 1), two_mixed.row(T - 1), D), 1e-3);
}

TEST(Rotary, ScoresDependOnTheDistanceOnly) {
  const int64_t T = 60, D = 16;
  RotaryTable table(T, D, 10000);
  Floats q = normals(D, 1), k = normals(D, 2);
  Tensor qs({1, T, D}), ks({1, T, D});
  for (int64_t t = 0; t < T; ++t) std::copy(q.begin(), q.end(), qs.row(t)), std::copy(k.begin(), k.end(), ks.row(t));
  for (Tensor* x : {&qs, &ks})
    kernel::rotate_rows(T, 1, D, x->data(), x->stride(), table.cosines.data(), table.sines.data(), 1);
  Tensor scores = matmul_nt(qs, ks);
  double plain = 0, size = 0;
  for (size_t i = 0; i < q.size(); ++i) {
    plain += static_cast<double>(q[i]) * static_cast<double>(k[i]);
    size += std::fabs(static_cast<double>(q[i]) * static_cast<double>(k[i]));
  }
  size = std::max(size, largest(doubles(q)) * largest(doubles(k)) * static_cast<double>(D));
  double spread = 0;
  for (int64_t t = 1; t < T; ++t) {
    for (int64_t j = 1; j < T; ++j) EXPECT_LE(std::fabs(scores.row(t)[j] - scores.row(t - 1)[j - 1]), 4 * kEps * size);
    EXPECT_NEAR(scores.row(t)[t], plain, 4 * kEps * size);  // no distance, no turn: nothing is added
    spread = std::max(spread, std::fabs(static_cast<double>(scores.row(t)[0]) - plain));
  }
  EXPECT_GT(spread, 0.1);
}

// So a window of rotary attention computes the same wherever the text stands.
TEST(Rotary, AWindowIsTheSameAnywhere) {
  const int64_t T = 40, D = 8, away = 17, window = 6;
  RotaryTable table(T + away, D, 10000);
  AttentionOptions o;
  o.mask = Mask::window;
  o.window = window;
  o.rotary = &table;
  Tensor late = random_tensor({1, T + away, 3 * D}, 1), early({1, T, 3 * D});
  for (int64_t t = 0; t < T; ++t) std::copy_n(late.row(t + away), 3 * D, early.row(t));
  Tensor a = attention(early, o), b = attention(late, o);
  for (int64_t t = window; t < T; ++t) EXPECT_LE(distance(a.row(t), b.row(t + away), D), 64 * kEps) << t;
}

}  // namespace
}  // namespace bary
