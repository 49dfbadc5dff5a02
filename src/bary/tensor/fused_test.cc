// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/fused.h"

#include "bary/base/error.h"
#include "bary/kernel/reference.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

namespace reference = kernel::reference;

Doubles plus_rows(Doubles y, const Doubles& bias) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return y;
}
Doubles plus(Doubles y, const Doubles& x) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  return y;
}
Doubles product_nt(const Doubles& x, const Doubles& w, int64_t rows, int64_t n, int64_t k) {
  return reference::product(x, reference::transposed(w, n, k), rows, n, k);
}

TEST(Fused, Linear) {
  for (const auto& size : {std::array<int64_t, 2>{1, 1}, {5, 3}, {18, 7}}) {
    const int64_t N = size[0], K = size[1];
    const double terms = static_cast<double>(N + K + 6);
    const Shape x{2, 3, K}, w{N, K}, b{N}, y{2, 3, N};
    auto plain = [=](const Doubles& a, const Doubles& c) { return product_nt(a, c, 6, N, K); };
    check_op({"linear",
              {x, w},
              [](auto& i) { return linear(i[0], i[1]); },
              [=](auto& i) { return plain(i[0], i[1]); },
              terms});
    check_op({"linear with bias",
              {x, w, b},
              [](auto& i) { return linear(i[0], i[1], i[2]); },
              [=](auto& i) { return plus_rows(plain(i[0], i[1]), i[2]); },
              terms});
    check_op({"linear onto",
              {x, w, b, y},
              [](auto& i) { return linear(i[0], i[1], i[2], i[3]); },
              [=](auto& i) { return plus(plus_rows(plain(i[0], i[1]), i[2]), i[3]); },
              terms});
    check_op({"by definition",
              {x, w, b},
              [](auto& i) { return linear_by_definition(i[0], i[1], i[2]); },
              [=](auto& i) { return plus_rows(plain(i[0], i[1]), i[2]); },
              terms});
  }
  check_op({"linear onto its own input",
            {{3, 4}, {4, 4}},
            [](auto& i) { return linear(i[0], i[1], {}, i[0]); },
            [](auto& i) { return plus(product_nt(i[0], i[1], 3, 4, 4), i[0]); },
            12});
}

TEST(Fused, Mlp) {
  for (auto act : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    const int64_t C = 5, F = 18;
    check_op({"mlp onto its input",
              {{2, 2, C}, {F, C}, {F}, {C, F}, {C}},
              [=](auto& i) {
                return mlp(i[0], {i[1], i[2], i[3], i[4]}, act, i[0]);
              },
              [=](auto& i) {
                Doubles h = plus_rows(product_nt(i[0], i[1], 4, F, C), i[2]);
                for (double& v : h) v = reference::activate(act, v).value;
                return plus(plus_rows(product_nt(h, i[3], 4, C, F), i[4]), i[0]);
              },
              40});
  }
  check_op({"mlp without biases",
            {{3, 2}, {4, 2}, {2, 4}},
            [](auto& i) {
              return mlp(i[0], {i[1], {}, i[2], {}}, Activation::silu);
            },
            [](auto& i) {
              Doubles h = product_nt(i[0], i[1], 3, 4, 2);
              for (double& v : h) v = reference::activate(Activation::silu, v).value;
              return product_nt(h, i[2], 3, 2, 4);
            },
            8});
}

Doubles norm_formula(const std::vector<Doubles>& i, int64_t C, bool layer) {
  Doubles y;
  for (size_t r = 0; r < i[0].size() / static_cast<size_t>(C); ++r) {
    auto n = reference::normalise(i[0].data() + r * static_cast<size_t>(C), C, layer, 1e-2f);
    for (size_t c = 0; c < n.h.size(); ++c) y.push_back(n.h[c] * i[1][c] + (i.size() > 2 ? i[2][c] : 0));
  }
  return y;
}

TEST(Fused, Norms) {
  for (int64_t C : {2, 5, 17}) {
    const Shape x{2, 3, C}, w{C};
    // 1/std of a row reaches 1/sqrt(eps) = 10, and rounding of the row is divided by it: counted as more terms
    const double terms = static_cast<double>(C) * 16;
    check_op({"layer_norm",
              {x, w, w},
              [](auto& i) { return layer_norm(i[0], i[1], i[2], 1e-2f); },
              [=](auto& i) { return norm_formula(i, C, true); },
              terms});
    check_op({"layer_norm without bias",
              {x, w},
              [](auto& i) { return layer_norm(i[0], i[1], {}, 1e-2f); },
              [=](auto& i) { return norm_formula(i, C, true); },
              terms});
    check_op({"by definition",
              {x, w, w},
              [](auto& i) { return layer_norm_by_definition(i[0], i[1], i[2], 1e-2f); },
              [=](auto& i) { return norm_formula(i, C, true); },
              terms});
    check_op({"rms_norm",
              {x, w},
              [](auto& i) { return rms_norm(i[0], i[1], 1e-2f); },
              [=](auto& i) { return norm_formula(i, C, false); },
              terms});
  }
}

TEST(Fused, Embedding) {
  const std::vector<int32_t> ids{4, 0, 4, 2, 2, 2};  // 1 and 3 get no gradient, 2 three times
  double scale = 1;
  auto formula = [&](const std::vector<Doubles>& i) {
    Doubles y;
    for (size_t r = 0; r < 6; ++r)
      for (size_t c = 0; c < 3; ++c)
        y.push_back(scale * i[0][static_cast<size_t>(ids[r]) * 3 + c] + (i.size() > 1 ? i[1][(2 + r % 3) * 3 + c] : 0));
    return y;
  };
  check_op({"embedding", {{5, 3}}, [=](auto& i) { return embedding(ids, 2, i[0]); }, formula, 3});
  check_op({"with positions",
            {{5, 3}, {6, 3}},
            [=](auto& i) {
              return embedding(ids, 2, i[0], {i[1], 2});
            },
            formula,
            3});
  scale = 2.5;
  check_op({"scaled", {{5, 3}, {6, 3}}, [=](auto& i) { return embedding(ids, 2, i[0], {i[1], 2, 2.5f}); }, formula, 3});
}

TEST(Fused, PrefixMean) {
  const size_t T = 7, C = 3;
  check_op({"prefix_mean",
            {{2, 7, 3}},
            [](auto& i) { return prefix_mean(i[0]); },
            [=](auto& i) {
              Doubles y;
              for (size_t r = 0; r < 2 * T; ++r) {
                for (size_t c = 0; c < C; ++c) {
                  double s = 0;
                  for (size_t j = r / T * T; j <= r; ++j) s += i[0][j * C + c];
                  y.push_back(s / static_cast<double>(r % T + 1));
                }
              }
              return y;
            },
            7});
  Tensor x = random_tensor({2, 9, 5}, 1), running = Tensor::zeros({2, 5});
  Floats whole = prefix_mean(x).to_vector(), values = x.to_vector();
  for (int64_t t = 0; t < 9; ++t) {  // one position at a time, as when generating
    Floats step;
    for (int64_t b = 0; b < 2; ++b)
      step.insert(step.end(), values.begin() + (b * 9 + t) * 5, values.begin() + (b * 9 + t + 1) * 5);
    Floats y = prefix_mean(Tensor::from({2, 1, 5}, step), running, t).to_vector();
    for (int64_t b = 0; b < 2; ++b)
      expect_same_bits({y.begin() + b * 5, y.begin() + (b + 1) * 5},
                       {whole.begin() + (b * 9 + t) * 5, whole.begin() + (b * 9 + t + 1) * 5},
                       "position " + std::to_string(t));
  }
}

TEST(Fused, LinearCrossEntropy) {
  const std::vector<int32_t> targets{2, -1, 0, 4, 4, 1};
  const int64_t V = 5, C = 3;
  for (float weight : {1.0f, 0.25f}) {
    auto formula = [=](const std::vector<Doubles>& i) {
      Doubles logits = product_nt(i[0], i[1], 6, V, C);
      if (i.size() > 2) logits = plus_rows(logits, i[2]);
      double loss = 0;
      for (size_t r = 0; r < 6; ++r)
        if (targets[r] >= 0) loss += reference::cross_entropy(logits.data() + r * 5, V, targets[r]);
      return Doubles{loss * static_cast<double>(weight)};
    };
    // only a seed of 1 is accepted, so the check's own weights are taken out again
    auto only_loss = [&](bool with_bias) {
      std::vector<Shape> shapes{{2, 3, C}, {V, C}, {V}};
      if (!with_bias) shapes.pop_back();
      std::vector<Tensor> x;
      std::vector<Doubles> values;
      for (size_t i = 0; i < shapes.size(); ++i) {
        x.push_back(random_tensor(shapes[i], 100 + i).require_grad());
        values.push_back(doubles(x.back()));
      }
      Tape tape;
      LossSum out = linear_cross_entropy(x[0], x[1], with_bias ? x[2] : Tensor(), targets, weight);
      EXPECT_EQ(out.count, 5);
      EXPECT_FLOAT_EQ(out.loss.item(), static_cast<float>(out.sum * static_cast<double>(weight)));
      tape.backward(out.loss);
      EXPECT_NEAR(out.sum * static_cast<double>(weight), formula(values)[0], 8 * kEps * 5);
      OpCase c{"", shapes, {}, formula};
      const double seed = static_cast<double>(normals(1, 7)[0]);
      for (size_t i = 0; i < x.size(); ++i) {
        Doubles g = central_differences(c, values, i);
        for (double& v : g) v /= seed;
        expect_close(x[i].grad_vector(), g, 16 * kEps * std::sqrt(14), "gradient " + std::to_string(i));
      }
    };
    only_loss(true);
    only_loss(false);
  }
}

// The fused loss is the plain one on the plain product, values and gradients, for vocabularies around the chunk size.
TEST(Fused, LinearCrossEntropyIsCrossEntropyOfLinear) {
  for (auto [rows, V] : {std::array<int64_t, 2>{1, 3}, {130, 70}, {300, 9000}}) {
    const int64_t C = 20;
    std::vector<int32_t> targets;
    for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>(r % 5 == 3 ? -1 : r * 7919 % V));
    auto run = [&, rows = rows, V = V](bool fused, bool record) {
      Tensor x = random_tensor({rows, C}, 1), w = random_tensor({V, C}, 2, 0.3), b = random_tensor({V}, 3);
      if (record) x.require_grad(), w.require_grad(), b.require_grad();
      Tape tape;
      Tensor loss = fused ? linear_cross_entropy(x, w, b, targets).loss : cross_entropy(linear(x, w, b), targets);
      Floats out = loss.to_vector();
      if (!record) return out;
      tape.backward(loss);
      for (const Tensor& t : {x, w, b}) kernel::append(out, t.grad_vector());
      return out;
    };
    Floats fused = run(true, true), plain = run(false, true);
    expect_same_bits(fused, plain, "rows " + std::to_string(rows));  // the same chains in the same order
    EXPECT_EQ(run(true, false)[0], fused[0]);
  }
}

TEST(Fused, LinearCrossEntropyOfNoRowsIsNothing) {
  const Tensor w = random_tensor({7, 4}, 1).require_grad();
  for (const Shape& shape : {Shape{0, 3, 4}, Shape{2, 0, 4}}) {
    for (const TapeGroups groups : {TapeGroups{}, TapeGroups{1, 3}}) {
      Floats gradient;
      Tape tape(gradient.data(), 0, groups);
      const LossSum loss = linear_cross_entropy(Tensor(shape), w, {}, {});
      EXPECT_EQ(loss.sum, 0);
      EXPECT_EQ(loss.count, 0);
      EXPECT_EQ(std::ssize(loss.sequences), shape[0]);
    }
  }
}

TEST(Fused, LinearForwardHasTheBitsOfItsDefinition) {
  for (int64_t rows : {1, 7, 100}) {
    Tensor x = random_tensor({rows, 33}, 1), w = random_tensor({65, 33}, 2), b = random_tensor({65}, 3);
    expect_same_bits(linear(x, w, b).to_vector(), linear_by_definition(x, w, b).to_vector(), "linear");
  }
}

// Wide enough for products in several blocks of the summed dimension, and (100 rows outside a loop of threads) for
// weights that are packed on their way: nothing that a later product reads may be overwritten on the way.
TEST(Fused, AWideMlpHasTheBitsOfItsDefinition) {
  const int64_t C = 300, F = 900;
  for (int64_t rows : {5, 100}) {
    auto run = [&](bool fused) {
      Tensor x = random_tensor({rows, C}, 1).require_grad(), up = random_tensor({F, C}, 2).require_grad();
      Tensor down = random_tensor({C, F}, 3).require_grad(), b = random_tensor({F}, 4).require_grad();
      Tape tape;
      Tensor y = fused ? mlp(x, {up, b, down, {}}, Activation::gelu)
                       : linear(activation(linear(x, up, b), Activation::gelu), down);
      tape.backward(sum(y * random_tensor(y.shape(), 5)));
      Floats out = y.to_vector();
      for (const Tensor& t : {x, up, down, b}) kernel::append(out, t.grad_vector());
      return out;
    };
    const Floats fused = run(true), plain = run(false);
    ASSERT_EQ(fused.size(), plain.size());
    for (size_t i = 0; i < fused.size(); ++i)
      ASSERT_EQ(fused[i], plain[i]) << "value " << i << " of " << rows << " rows";
  }
}

TEST(Fused, EveryInstructionSetGivesTheSameBits) {
  const std::vector<int32_t> ids{1, 5, 0, 3, 3, 2, 6, 6}, targets{5, 0, 3, 3, 2, 6, 6, -1};
  kernel::on_every_isa("a small model", [&] {
    Tensor table = random_tensor({7, 20}, 1).require_grad(), norm = random_tensor({20}, 2).require_grad();
    Tensor up = random_tensor({70, 20}, 3).require_grad(), down = random_tensor({20, 70}, 4).require_grad();
    Tape tape;
    Tensor x = prefix_mean(embedding(ids, 2, table));
    x = mlp(layer_norm(x, norm, {}), {up, {}, down, {}}, Activation::gelu, x);
    Tensor loss = linear_cross_entropy(rms_norm(x, norm), table, {}, targets).loss;
    tape.backward(loss);
    Floats out = loss.to_vector();
    for (const Tensor& t : {table, norm, up, down}) kernel::append(out, t.grad_vector());
    return out;
  });
}

TEST(Fused, MistakesAreNamed) {
  Tensor x({2, 3, 4}), w({5, 4}), b5({5}), b4({4}), table({10, 4}), places({3, 4});
  EXPECT_THROW(linear(x, table, b5), Error);
  EXPECT_THROW(linear(x, Tensor({5, 3})), Error);
  EXPECT_THROW(linear(x, w, b5, x), Error);
  EXPECT_THROW(mlp(x, {w, b4, Tensor({4, 5}), b4}, Activation::gelu), Error);
  EXPECT_THROW(mlp(x, {w, b5, Tensor({4, 6}), b4}, Activation::gelu), Error);
  EXPECT_THROW(mlp(x, {w, b5, Tensor({5, 5}), b5}, Activation::gelu, x), Error);
  EXPECT_THROW(layer_norm(x, b5, {}), Error);
  EXPECT_THROW(layer_norm(x, b4, b5), Error);
  EXPECT_THROW(prefix_mean(places), Error);
  EXPECT_THROW(prefix_mean(x, Tensor({2, 5})), Error);
  auto text_of = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  const std::vector<int32_t> ids{1, 2, 10, 3}, below{1, -1};
  EXPECT_NE(text_of([&] { embedding(ids, 1, table); }).find("token id 10 at position 2, the vocabulary has 10"),
            std::string::npos);
  EXPECT_NE(text_of([&] { embedding(below, 1, table); }).find("token id -1"), std::string::npos);
  EXPECT_NE(text_of([&] { embedding(std::vector<int32_t>(4, 0), 1, table, {places}); }).find("the table ends at 2"),
            std::string::npos);
  EXPECT_THROW(embedding(std::vector<int32_t>(3, 0), 2, table), Error);
  EXPECT_THROW(embedding(std::vector<int32_t>(3, 0), 1, table, {Tensor({3, 5})}), Error);
  EXPECT_THROW(linear_cross_entropy(x, table, {}, std::vector<int32_t>(6, 10)), Error);
  EXPECT_THROW(linear_cross_entropy(x, table, {}, std::vector<int32_t>(5, 0)), Error);
  EXPECT_THROW(linear_cross_entropy(x, Tensor({10, 3}), {}, std::vector<int32_t>(6, 0)), Error);
  Tape tape;
  x.require_grad();
  EXPECT_THROW(prefix_mean(x, Tensor({2, 4})), Error);
  Tensor loss = linear_cross_entropy(x, table, {}, std::vector<int32_t>(6, 0)).loss;
  EXPECT_THROW(tape.backward(loss, 2), Error);
}

}  // namespace
}  // namespace bary
