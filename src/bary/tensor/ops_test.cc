// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/ops.h"

#include "bary/base/error.h"
#include "bary/kernel/reference.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

namespace reference = kernel::reference;

Doubles each(size_t n, const std::function<double(size_t)>& f) {
  Doubles y(n);
  for (size_t i = 0; i < n; ++i) y[i] = f(i);
  return y;
}

TEST(Ops, Elementwise) {
  for (int64_t C : {1, 5, 17}) {
    const Shape s{2, 3, C};
    check_op({"add",
              {s, s},
              [](auto& x) { return x[0] + x[1]; },
              [](auto& x) { return each(x[0].size(), [&](size_t i) { return x[0][i] + x[1][i]; }); }});
    check_op({"add to itself",
              {s},
              [](auto& x) { return x[0] + x[0]; },
              [](auto& x) { return each(x[0].size(), [&](size_t i) { return 2 * x[0][i]; }); }});
    check_op({"multiply",
              {s, s},
              [](auto& x) { return x[0] * x[1]; },
              [](auto& x) { return each(x[0].size(), [&](size_t i) { return x[0][i] * x[1][i]; }); }});
    check_op({"square",
              {s},
              [](auto& x) { return x[0] * x[0]; },
              [](auto& x) { return each(x[0].size(), [&](size_t i) { return x[0][i] * x[0][i]; }); }});
    check_op({"times -2.5",
              {s},
              [](auto& x) { return x[0] * -2.5f; },
              [](auto& x) { return each(x[0].size(), [&](size_t i) { return x[0][i] * -2.5; }); }});
    check_op({"sum",
              {s},
              [](auto& x) { return sum(x[0]); },
              [](auto& x) {
                double t = 0;
                for (double v : x[0]) t += v;
                return Doubles{t};
              },
              static_cast<double>(s.volume())});
    for (auto act : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu})
      check_op({"activation",
                {s},
                [=](auto& x) { return activation(x[0], act); },
                [=](auto& x) {
                  return each(x[0].size(), [&](size_t i) { return reference::activate(act, x[0][i]).value; });
                }});
  }
}

Doubles batched(const Doubles& a, const Doubles& b, int64_t B, std::array<int64_t, 3> mnk) {
  auto [m, n, k] = mnk;
  Doubles y;
  for (int64_t i = 0; i < B; ++i) {
    Doubles part = reference::product({a.begin() + i * m * k, a.begin() + (i + 1) * m * k},
                                      {b.begin() + i * k * n, b.begin() + (i + 1) * k * n}, m, n, k);
    y.insert(y.end(), part.begin(), part.end());
  }
  return y;
}

TEST(Ops, Products) {
  for (const auto& size : {std::array<int64_t, 3>{1, 1, 1}, {3, 4, 5}, {2, 7, 17}}) {
    const int64_t T = size[0], S = size[1], D = size[2];
    check_op({"matmul",
              {{2, T, S}, {2, S, D}},
              [](auto& x) { return matmul(x[0], x[1]); },
              [=](auto& x) {
                return batched(x[0], x[1], 2, {T, D, S});
              },
              static_cast<double>(S + T + D)});
    check_op(
        {"matmul_nt",
         {{2, T, D}, {2, S, D}},
         [](auto& x) { return matmul_nt(x[0], x[1]); },
         [=](auto& x) {
           Doubles flipped;
           for (int64_t i = 0; i < 2; ++i) {
             Doubles part = reference::transposed({x[1].begin() + i * S * D, x[1].begin() + (i + 1) * S * D}, S, D);
             flipped.insert(flipped.end(), part.begin(), part.end());
           }
           return batched(x[0], flipped, 2, {T, S, D});
         },
         static_cast<double>(S + T + D)});
  }
}

bool visible(Mask mask, int64_t window, int64_t t, int64_t j) {
  return mask == Mask::full || (j <= t && (mask == Mask::causal || j > t - window));
}

TEST(Ops, MaskAndSoftmax) {
  const int64_t T = 6;
  for (Mask mask : {Mask::causal, Mask::full, Mask::window}) {
    check_op({"softmax of masked",
              {{2, T, T}},
              [=](auto& x) { return softmax(masked(x[0], mask, 3)); },
              [=](auto& x) {
                Doubles y;
                for (int64_t r = 0; r < 2 * T; ++r) {
                  Doubles row(x[0].begin() + r * T, x[0].begin() + (r + 1) * T);
                  for (int64_t j = 0; j < T; ++j)
                    if (!visible(mask, 3, r % T, j)) row[static_cast<size_t>(j)] = -INFINITY;
                  for (double p : reference::softmax(row.data(), T)) y.push_back(p);
                }
                return y;
              },
              static_cast<double>(T)});
    Tensor p = softmax(masked(random_tensor({1, T, T}, 1, 50), mask, 3));
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j < T; ++j) EXPECT_TRUE(visible(mask, 3, t, j) || p.row(t)[j] == 0);  // exactly
  }
}

TEST(Ops, ColumnsAndConcat) {
  check_op({"columns",
            {{2, 3, 20}},
            [](auto& x) { return columns(x[0], 4, 9); },
            [](auto& x) { return each(54, [&](size_t i) { return x[0][i / 9 * 20 + 4 + i % 9]; }); }});
  check_op({"overlapping columns",
            {{3, 8}},
            [](auto& x) { return columns(x[0], 0, 5) * columns(x[0], 3, 5); },
            [](auto& x) {
              return each(15, [&](size_t i) { return x[0][i / 5 * 8 + i % 5] * x[0][i / 5 * 8 + 3 + i % 5]; });
            }});
  check_op({"concat",
            {{3, 2}, {3, 1}, {3, 17}},
            [](auto& x) {
              return concat(std::array{x[0], x[1], x[2], x[1]});
            },
            [](auto& x) {
              return each(63, [&](size_t i) {
                size_t r = i / 21, c = i % 21;
                return c < 2 ? x[0][r * 2 + c] : c == 2 || c == 20 ? x[1][r] : x[2][r * 17 + c - 3];
              });
            }});
}

TEST(Ops, Heads) {
  const size_t T = 3, H = 2, D = 5;
  check_op({"split",
            {{2, 3, 10}},
            [](auto& x) { return split_heads(x[0], 2); },
            [=](auto& x) {
              return each(60, [&](size_t i) {
                size_t d = i % D, t = i / D % T, h = i / D / T % H, b = i / D / T / H;
                return x[0][(b * T + t) * H * D + h * D + d];
              });
            }});
  check_op({"merge",
            {{4, 3, 5}},
            [](auto& x) { return merge_heads(x[0], 2); },
            [=](auto& x) {
              return each(60, [&](size_t i) {
                size_t d = i % D, h = i / D % H, t = i / D / H % T, b = i / D / H / T;
                return x[0][((b * H + h) * T + t) * D + d];
              });
            }});
  Tensor x = random_tensor({2, 7, 12}, 1);
  expect_same_bits(merge_heads(split_heads(x, 3), 3).to_vector(), x.to_vector(), "there and back");
}

TEST(Ops, CrossEntropy) {
  const std::vector<int32_t> targets{2, -1, 0, 6};
  check_op({"cross_entropy",
            {{2, 2, 7}},
            [=](auto& x) { return cross_entropy(x[0], targets); },
            [=](auto& x) {
              double loss = 0;
              for (size_t r = 0; r < 4; ++r)
                if (targets[r] >= 0) loss += reference::cross_entropy(x[0].data() + r * 7, 7, targets[r]);
              return Doubles{loss};
            },
            7});
  Tensor far = Tensor::from({2, 2}, Floats{0, -200, -20000, -20001});
  EXPECT_FLOAT_EQ(cross_entropy(far, std::vector<int32_t>{1, -1}).item(), 200);
  EXPECT_NEAR(cross_entropy(far, std::vector<int32_t>{-1, 0}).item(), 0.313262, 1e-6);
}

TEST(Ops, Dropout) {
  kernel::DropoutSite site;
  site.p = 0.4f;
  site.seed = 3;
  check_op({"dropout",
            {{2, 3, 17}},
            [=](auto& x) {
              return dropout(x[0], site, {10, 20});
            },
            [=](auto& x) {
              return each(x[0].size(), [&](size_t i) {
                uint32_t key = kernel::dropout_row_key(site, 10 + i / 51, 0, 20 + i / 17 % 3);
                bool keep =
                    kernel::dropout_keeps(key, static_cast<uint32_t>(i % 17), kernel::dropout_threshold(site.p));
                return keep ? x[0][i] / (1 - static_cast<double>(site.p)) : 0;
              });
            }});
  Tensor x = random_tensor({2, 3, 17}, 1);
  site.p = 0;
  EXPECT_EQ(dropout(x, site, {}).id(), x.id());  // off: nothing happens at all
}

// A batch of two is its sequences one by one, wherever they stand in the batch.
TEST(Ops, DropoutFollowsTheSequenceNotTheBuffer) {
  kernel::DropoutSite site;
  site.p = 0.5f;
  Tensor both = random_tensor({2, 4, 9}, 1);
  Floats whole = dropout(both, site, {6, 0}).to_vector(), values = both.to_vector();
  Tensor tail = Tensor::from({1, 2, 9}, std::span(values).subspan(54));  // sequence 7 from position 2
  expect_same_bits(dropout(tail, site, {7, 2}).to_vector(), {whole.begin() + 54, whole.end()}, "tail");
}

TEST(Ops, MistakesAreNamed) {
  Tensor a({2, 3, 4}), b({2, 3, 5}), flat({6, 4});
  kernel::DropoutSite site;
  site.p = 1;
  EXPECT_THROW(a + b, Error);
  EXPECT_THROW(a * b, Error);
  EXPECT_THROW(matmul(a, b), Error);
  EXPECT_THROW(matmul_nt(a, b), Error);
  EXPECT_THROW(matmul(flat, flat), Error);
  EXPECT_THROW(masked(flat, Mask::causal), Error);
  EXPECT_THROW(masked(a, Mask::window, 0), Error);
  EXPECT_THROW(columns(a, 2, 3), Error);
  EXPECT_THROW(columns(a, -1, 2), Error);
  EXPECT_THROW(concat({}), Error);
  EXPECT_THROW(concat(std::array{a, Tensor({5, 4})}), Error);
  EXPECT_THROW(split_heads(a, 3), Error);
  EXPECT_THROW(merge_heads(a, 3), Error);
  EXPECT_THROW(cross_entropy(flat, std::vector<int32_t>(5, 0)), Error);
  EXPECT_THROW(cross_entropy(flat, std::vector<int32_t>(6, 4)), Error);
  EXPECT_THROW(dropout(a, site, {}), Error);
  try {
    a + b;
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "add: shapes (2,3,4) and (2,3,5) differ; they must be equal");
  }
}

}  // namespace
}  // namespace bary
