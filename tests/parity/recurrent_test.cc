// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and additive attention against PyTorch: every result and every gradient, two layers with packed
// sequences of unequal lengths among them; and ten AdamW steps of a small LSTM language model.
#include "bary/nn/recurrent.h"

#include "bary/nn/layers.h"
#include "bary/tensor/additive.h"
#include "bary/train/adamw.h"
#include "golden.h"

namespace bary::parity {
namespace {

constexpr int64_t kB = 3, kT = 8, kC = 5, kH = 17;

struct Case {
  const char* name;
  Cell cell;
  int64_t n_layer;
};
class Recurrent : public testing::TestWithParam<Case> {};

// The longest way of one number: each of T steps of each layer adds up its channels, its units and four more roundings
// of the gates. A recurrent network passes rounding on from step to step, no larger than it was as long as |W_hh| < 1.
double forward_bound(int64_t layers, std::span<const float> truth) {
  return chain_bound(1, layers * kT * (2 * kH + 4), truth);
}
// and back again, over all rows of the batch at the end
double backward_bound(int64_t layers, std::span<const float> truth) {
  return chain_bound(1, 2 * layers * kT * (2 * kH + 4) + kB * kT, truth);
}

// Layer i of a golden (layers,B,H)
Tensor layer_of(const Tensor& all, int64_t i) {
  const std::vector<float> v = all.to_vector();
  return Tensor::from({kB, kH}, std::span(v).subspan(static_cast<size_t>(i * kB * kH), kB * kH));
}

TEST_P(Recurrent, ResultsAndGradientsFollowPyTorch) {
  const Case k = GetParam();
  const bool lstm = k.cell == Cell::lstm;
  const Golden g("recurrent");
  const std::string prefix = std::string(k.name) + ".";
  Parameters p(0);
  RecurrentStackConfig config;
  config.cell = k.cell, config.channels = kC, config.hidden = kH, config.n_layer = k.n_layer;
  RecurrentStack stack(Scope{&p, "", ""}, config);
  for (const Parameter& q : p.list()) set_parameter(p, q.name, g.floats(prefix + "weight." + q.name));
  p.changed();

  std::vector<int64_t> lengths;
  for (int32_t n : g.integers("lengths")) lengths.push_back(n);
  RecurrentOptions o;
  if (k.n_layer > 1) o.lengths = lengths;  // the packed ones
  Tensor x = g.wanted(prefix + "x");
  RecurrentStates first;
  for (int64_t i = 0; i < k.n_layer; ++i)
    first.layers.push_back({layer_of(g.tensor(prefix + "h0"), i).require_grad(),
                            lstm ? layer_of(g.tensor(prefix + "c0"), i).require_grad() : Tensor()});

  std::vector<float> gradients(static_cast<size_t>(p.size()), 0.0f);
  Tape tape(gradients.data());
  const RecurrentStackOutput out = stack(x, first, Pass{}, o);
  Tensor loss = sum(out.y * g.tensor(prefix + "dy"));
  for (int64_t i = 0; i < k.n_layer; ++i) {
    const RecurrentState& last = out.last.layers[static_cast<size_t>(i)];
    loss = loss + sum(last.h * layer_of(g.tensor(prefix + "dh"), i));
    if (lstm) loss = loss + sum(last.c * layer_of(g.tensor(prefix + "dc"), i));
  }
  tape.backward(loss);

  const std::vector<float> y = g.floats(prefix + "y_truth"), dx = g.floats(prefix + "grad.x_truth");
  expect_within(out.y.to_vector(), y, forward_bound(k.n_layer, y), prefix + "y", g.floats(prefix + "y"));
  expect_within(x.grad_vector(), dx, backward_bound(k.n_layer, dx), prefix + "dx", g.floats(prefix + "grad.x"));
  for (const char* state : {"h", "c"}) {
    if (*state == 'c' && !lstm) continue;
    const std::string name = prefix + state, first_name = prefix + "grad." + state + "0";
    for (int64_t i = 0; i < k.n_layer; ++i) {
      const auto part = static_cast<size_t>(i);
      const RecurrentState &last = out.last.layers[part], &start = first.layers[part];
      const std::vector<float> want = layer_of(g.tensor(name + "_truth"), i).to_vector(),
                               dwant = layer_of(g.tensor(first_name + "_truth"), i).to_vector();
      const std::string layer = " of layer " + std::to_string(i);
      expect_within((*state == 'h' ? last.h : last.c).to_vector(), want, forward_bound(k.n_layer, want), name + layer,
                    layer_of(g.tensor(name), i).to_vector());
      expect_within((*state == 'h' ? start.h : start.c).grad_vector(), dwant, backward_bound(k.n_layer, dwant),
                    first_name + layer, layer_of(g.tensor(first_name), i).to_vector());
    }
  }
  for (const Parameter& q : p.list()) {
    const std::string name = prefix + "grad." + q.name;
    const std::vector<float> want = g.floats(name + "_truth");
    expect_within(gradient_of(p, gradients, q.name), want, backward_bound(k.n_layer, want), name, g.floats(name));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Recurrent,
                         testing::Values(Case{"rnn1", Cell::rnn, 1}, Case{"rnn2", Cell::rnn, 2},
                                         Case{"lstm1", Cell::lstm, 1}, Case{"lstm2", Cell::lstm, 2},
                                         Case{"gru1", Cell::gru, 1}, Case{"gru2", Cell::gru, 2}),
                         [](const auto& which) { return which.param.name; });

TEST(AdditiveAttention, ResultsAndGradientsFollowPyTorch) {
  const Golden g("recurrent");
  std::vector<std::pair<std::string, Tensor>> in;
  for (const char* name : {"s", "h", "w_q", "w_k", "v"})
    in.emplace_back(name, g.wanted(std::string("additive.") + name));
  Tape tape;
  const Tensor &s = in[0].second, &h = in[1].second;
  const Tensor scores = additive_scores(linear(s, in[2].second), linear(h, in[3].second), in[4].second);
  const Tensor y = matmul(softmax(scores), h);
  tape.backward(sum(y * g.tensor("additive.dy")));

  // sums over 9 channels, 21 channels of v, 6 keys; back the same way, and over 2 x 4 queries of 6 keys for v
  constexpr int64_t kForward = 9 + 21 + 6, kBackward = 2 * kForward + 2 * 4 * 6;
  const std::vector<float> want_scores = g.floats("additive.scores_truth"), want = g.floats("additive.y_truth");
  expect_within(scores.to_vector(), want_scores, chain_bound(2, kForward, want_scores), "additive scores",
                g.floats("additive.scores"));
  expect_within(y.to_vector(), want, chain_bound(2, kForward, want), "additive y", g.floats("additive.y"));
  for (const auto& [name, t] : in) {
    const std::vector<float> truth = g.floats("additive.grad." + name + "_truth");
    expect_within(t.grad_vector(), truth, chain_bound(2, kBackward, truth), "additive d" + name,
                  g.floats("additive.grad." + name));
  }
}

struct SmallModel {
  explicit SmallModel(const Golden& g)
      : p(0),
        wte(Scope{&p, "wte", ""}, 31, 16),
        lstm(Scope{&p, "lstm", ""}, config()),
        lm_head(Scope{&p, "lm_head", ""}, 20, 31) {
    for (const Parameter& q : p.list()) set_parameter(p, q.name, g.floats("steps.initial." + q.name));
    p.changed();
  }
  static RecurrentStackConfig config() {
    RecurrentStackConfig c;
    c.cell = Cell::lstm, c.channels = 16, c.hidden = 20;
    return c;
  }
  LossSum loss(std::span<const int32_t> inputs, std::span<const int32_t> targets, int64_t batch) const {
    const Tensor y = lstm(embedding(inputs, batch, wte.weight), {}, Pass{}).y;
    return linear_cross_entropy(y, lm_head.weight, lm_head.bias, targets);
  }
  Parameters p;
  Embedding wte;
  RecurrentStack lstm;
  Linear lm_head;
};

TEST(RecurrentSteps, TenStepsFollowPyTorch) {
  constexpr int64_t kBatch = 4, kLength = 12, kSteps = 10, kTokens = kBatch * kLength;
  const Golden g("recurrent");
  SmallModel model(g);
  AdamW adamw(model.p, AdamWOptions{});
  const std::vector<int32_t> tokens = g.integers("steps.tokens");
  const std::vector<double> truth = g.doubles("steps.losses_truth");
  const std::vector<float> theirs = g.floats("steps.losses");
  std::vector<float> gradients(static_cast<size_t>(model.p.size()));
  double worst_loss = 0, their_worst = 0;
  for (size_t step = 0; step < kSteps; ++step) {
    std::vector<int32_t> inputs, targets;
    for (int64_t b = 0; b < kBatch; ++b) {
      const int32_t* row = tokens.data() + (static_cast<int64_t>(step) * kBatch + b) * (kLength + 1);
      inputs.insert(inputs.end(), row, row + kLength);
      targets.insert(targets.end(), row + 1, row + kLength + 1);
    }
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    Tape tape(gradients.data());
    const LossSum loss = model.loss(inputs, targets, kBatch);
    tape.backward(loss.loss);
    if (step == 0) {
      const std::string name = "lstm.weight_hh_l0";
      std::vector<float> mean = gradient_of(model.p, gradients, name);
      for (float& v : mean) v /= static_cast<float>(kTokens);
      const std::vector<float> want = g.floats("steps.first_gradient." + name);
      // 12 steps there and back through sums of 16 + 20, the head's 31, then the sum over 48 positions
      expect_within(mean, want, chain_bound(2, 2 * kLength * 36 + 31 + kTokens, want), "first gradient");
    }
    const double d = std::fabs(loss.sum / static_cast<double>(kTokens) - truth[step]);
    worst_loss = d <= worst_loss ? worst_loss : d;
    their_worst = std::max(their_worst, std::fabs(static_cast<double>(theirs[step]) - truth[step]));
    ASSERT_TRUE(adamw.step(gradients.data(), kTokens, 1e-3).finite);
  }
  // as in two_blocks_test.cc: two roundings of a loss below 4
  const double loss_bound = 2 * 4 * kEps;
  EXPECT_LE(worst_loss, loss_bound);
  std::printf("  losses: largest deviation %.2e (bound %.2e, PyTorch's own %.2e)\n", worst_loss, loss_bound,
              their_worst);

  const double gap = g.doubles("steps.gap")[0], moved = g.doubles("steps.moved")[0];
  double square = 0, worst = 0;
  for (const Parameter& q : model.p.list()) {
    const std::vector<float> want = g.floats("steps.final." + q.name);
    const auto got = model.p.values_of(q);
    worst = std::max(worst, largest_difference(got, want));
    for (size_t i = 0; i < want.size(); ++i) square += (got[i] - want[i]) * (got[i] - want[i]);
  }
  EXPECT_LE(worst, 4 * gap);
  EXPECT_LE(std::sqrt(square), 2e-5 * moved);
  std::printf("  final weights: largest deviation %.2e (PyTorch's own %.2e), distance %.2e of %.3f moved\n", worst, gap,
              std::sqrt(square), moved);
}

}  // namespace
}  // namespace bary::parity
