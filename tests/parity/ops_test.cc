// SPDX-License-Identifier: Apache-2.0
// Single operations against PyTorch, output and gradients, at widths below, at and above the 16 lanes of a sum.
#include "bary/tensor/fused.h"
#include "golden.h"

namespace bary::parity {
namespace {

// y = f(inputs); compares y and every input's gradient. `n`: the longest chain of sums, `factor` as in golden.h.
template <class F>
void check(const Golden& g, const std::string& op, std::vector<std::string> inputs, double factor, int64_t n, F f) {
  std::vector<Tensor> in;
  for (const std::string& name : inputs) in.push_back(g.wanted(op + "." + name));
  Tape tape;
  Tensor y = f(in);
  tape.backward(sum(y * g.tensor(op + ".dy")));
  const std::vector<float> truth = g.floats(op + ".y_truth");
  expect_within(y.to_vector(), truth, chain_bound(factor, n, truth), op + " y", g.floats(op + ".y"));
  for (size_t i = 0; i < in.size(); ++i) {
    const std::vector<float> want = g.floats(op + ".d" + inputs[i] + "_truth");
    expect_within(in[i].grad_vector(), want, chain_bound(factor, n, want), op + " d" + inputs[i],
                  g.floats(op + ".d" + inputs[i]));
  }
}

TEST(Ops, LayerNorm) {
  Golden g("ops");
  for (int64_t w : {1, 17, 130}) {
    const std::string op = "layer_norm.w" + std::to_string(w);
    if (w == 1) continue;  // its own test: everything is 0 but the bias
    check(g, op, {"x", "weight", "bias"}, 4, w, [](auto& in) { return layer_norm(in[0], in[1], in[2]); });
  }
}

TEST(Ops, LayerNormOfOneChannelIsItsBias) {
  Golden g("ops");
  Tensor x = g.wanted("layer_norm.w1.x"), w = g.wanted("layer_norm.w1.weight"), b = g.wanted("layer_norm.w1.bias");
  Tape tape;
  Tensor y = layer_norm(x, w, b);
  tape.backward(sum(y * g.tensor("layer_norm.w1.dy")));
  EXPECT_EQ(y.to_vector(), g.floats("layer_norm.w1.y_truth"));
  // with one channel the gradient is a difference of equal numbers times 1/sqrt(eps) = 316: what is left is rounding
  EXPECT_LE(largest(x.grad_vector()), 316 * 4 * kEps * largest(g.floats("layer_norm.w1.dy")) * largest(w.to_vector()));
  EXPECT_EQ(largest(w.grad_vector()), 0);
  expect_within(b.grad_vector(), g.floats("layer_norm.w1.dbias_truth"), 4 * kEps * 5, "layer_norm.w1 dbias");
}

TEST(Ops, RmsNorm) {
  Golden g("ops");
  for (int64_t w : {17, 130}) {
    const std::string op = "rms_norm.w" + std::to_string(w);
    check(g, op, {"x", "weight"}, 4, std::max<int64_t>(w, 5), [](auto& in) { return rms_norm(in[0], in[1]); });
  }
}

TEST(Ops, RmsNormOfOneChannelIsASign) {
  Golden g("ops");
  Tensor x = g.wanted("rms_norm.w1.x"), w = g.wanted("rms_norm.w1.weight");
  Tape tape;
  Tensor y = rms_norm(x, w);
  tape.backward(sum(y * g.tensor("rms_norm.w1.dy")));
  const std::vector<float> truth = g.floats("rms_norm.w1.y_truth"), dw = g.floats("rms_norm.w1.dweight_truth");
  expect_within(y.to_vector(), truth, chain_bound(4, 1, truth), "rms_norm.w1 y");
  expect_within(w.grad_vector(), dw, chain_bound(4, 5, dw), "rms_norm.w1 dweight");
  // dx = dy w (1 - h^2) / |x| with h = +-1: a difference of equal numbers, whose rounding is divided by |x|
  double smallest = HUGE_VAL;
  for (float v : x.to_vector()) smallest = std::min(smallest, std::fabs(static_cast<double>(v)));
  const double scale = largest(g.floats("rms_norm.w1.dy")) * largest(w.to_vector()) / smallest;
  expect_within(x.grad_vector(), g.floats("rms_norm.w1.dx_truth"), 4 * kEps * scale, "rms_norm.w1 dx",
                g.floats("rms_norm.w1.dx"));
}

TEST(Ops, Softmax) {
  Golden g("ops");
  for (int64_t w : {1, 17, 130})
    check(g, "softmax.w" + std::to_string(w), {"x"}, 4, w, [](auto& in) { return softmax(in[0]); });
}

TEST(Ops, SoftmaxOfLargeNumbersIsNotInfinite) {
  Golden g("ops");
  check(g, "softmax.large", {"x"}, 4, 33, [](auto& in) { return softmax(in[0]); });
}

// y is within two roundings of the largest |x|, 12. The derivatives hold 1 - s with s rounded near 1, times what grows
// beside it: x for SiLU, x 2u' (36 where s reaches 1) for GELU's approximation, nothing for GELU and ReLU.
TEST(Ops, Activations) {
  struct Case {
    const char* name;
    Activation act;
    double beside;
  };
  Golden g("ops");
  for (const Case& c : {Case{"gelu_erf", Activation::gelu, 1}, Case{"gelu_tanh", Activation::gelu_tanh, 36},
                        Case{"silu", Activation::silu, 12}, Case{"relu", Activation::relu, 0}}) {
    const std::string op = c.name;
    Tensor x = g.wanted(op + ".x"), dy = g.tensor(op + ".dy");
    Tape tape;
    Tensor y = activation(x, c.act);
    tape.backward(sum(y * dy));
    const std::vector<float> truth = g.floats(op + ".y_truth");
    expect_within(y.to_vector(), truth, chain_bound(2, 1, truth), op + " y", g.floats(op + ".y"));
    expect_within(x.grad_vector(), g.floats(op + ".dx_truth"), 2 * kEps * (1 + c.beside) * largest(dy.to_vector()),
                  op + " dx", g.floats(op + ".dx"));
  }
}

void check_cross_entropy(const std::string& op) {
  Golden g("ops");
  const std::vector<int32_t> targets = g.integers("cross_entropy.targets");
  Tensor x = g.wanted(op + ".x");
  const auto rows = static_cast<float>(targets.size());
  Tape tape;
  Tensor loss = cross_entropy(x, targets) * (1 / rows);  // PyTorch's is the mean
  tape.backward(loss * g.floats(op + ".dy")[0]);
  const std::vector<float> truth = g.floats(op + ".y_truth"), dx = g.floats(op + ".dx_truth");
  expect_within(loss.to_vector(), truth, chain_bound(4, 61, truth), op + " y", g.floats(op + ".y"));
  expect_within(x.grad_vector(), dx, chain_bound(4, 61, dx), op + " dx", g.floats(op + ".dx"));
}
TEST(Ops, CrossEntropy) { check_cross_entropy("cross_entropy"); }
TEST(Ops, CrossEntropyOfLargeLogits) { check_cross_entropy("cross_entropy.large"); }

TEST(Ops, LinearCrossEntropyIsTheSameLoss) {
  Golden g("ops");
  const std::vector<int32_t> targets = g.integers("cross_entropy.targets");
  Tensor x = g.wanted("cross_entropy.x");
  const int64_t V = x.channels();
  Tensor identity = Tensor::zeros({V, V});
  for (int64_t i = 0; i < V; ++i) identity.row(i)[i] = 1;
  const float weight = g.floats("cross_entropy.dy")[0] / static_cast<float>(targets.size());
  Tape tape;
  LossSum loss = linear_cross_entropy(x, identity, {}, targets, weight);
  tape.backward(loss.loss);
  const double truth = g.floats("cross_entropy.y_truth")[0];
  EXPECT_EQ(loss.count, static_cast<int64_t>(targets.size()));
  EXPECT_NEAR(loss.sum / static_cast<double>(loss.count), truth, 4 * kEps * std::sqrt(61.0) * truth);
  const std::vector<float> dx = g.floats("cross_entropy.dx_truth");
  expect_within(x.grad_vector(), dx, chain_bound(4, 61, dx), "linear_cross_entropy dx");
}

TEST(Ops, Embedding) {
  Golden g("ops");
  Tensor w = g.wanted("embedding.weight");
  const std::vector<int32_t> ids = g.integers("embedding.ids");
  Tape tape;
  Tensor y = embedding(ids, 3, w);
  tape.backward(sum(y * g.tensor("embedding.dy")));
  EXPECT_EQ(y.to_vector(), g.floats("embedding.y_truth"));
  const std::vector<float> dw = g.floats("embedding.dweight_truth");  // ids repeat: rows add up
  expect_within(w.grad_vector(), dw, chain_bound(2, 5, dw), "embedding dweight", g.floats("embedding.dweight"));
}

}  // namespace
}  // namespace bary::parity
