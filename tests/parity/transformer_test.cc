// SPDX-License-Identifier: Apache-2.0
// The encoder-decoder against nn.Transformer between two embeddings and a head, on a batch of padded pairs: logits,
// what the last layer reads of the source, losses, the gradient of every parameter; and ten AdamW steps. nn.Transformer
// norms the result of each stack once more in both placements. bary does so before-norm only, where nothing else would,
// so the post-norm golden is of an nn.Transformer whose encoder.norm and decoder.norm are None.
#include "bary/model/seq2seq.h"
#include "bary/tensor/tap.h"
#include "bary/train/adamw.h"
#include "bary/train/gradient.h"
#include "golden.h"

namespace bary::parity {
namespace {

constexpr int64_t kB = 3, kS = 7, kT = 6, kHeads = 2, kSteps = 10;
constexpr float kSmoothing = 0.1f;

// The longest way of one number to the logits. Attention: the mean of a norm, the projection, scores of 8 channels, as
// many keys as there are positions, the output matrix; MLP: a norm, 16 in, 32 out. Two such in an encoder layer, three
// in a decoder layer.
constexpr int64_t kAttention = 16 + 16 + 8 + kS + 16, kMlp = 16 + 16 + 32;
constexpr int64_t kForward = 2 * (kAttention + kMlp) + 2 * (2 * kAttention + kMlp) + 16;
constexpr int64_t kBackward = 2 * kForward + kB * kT;  // there and back again, and over all rows of the batch

class Transformer : public testing::TestWithParam<const char*> {
 protected:
  Transformer() : norm(GetParam()), g("transformer") {
    ModelConfig c;
    c.arch = Arch::encoder_decoder, c.source_vocab_size = 13, c.vocab_size = 11, c.block_size = kS;
    c.n_layer = 2, c.n_head = kHeads, c.n_embd = 16, c.mlp_ratio = 2, c.mlp = MlpKind::relu;
    c.pos = Position::sinusoidal, c.qkv_bias = c.embed_scale = true;
    c.norm = norm == "pre" ? NormPlace::pre : NormPlace::post;
    model = make_seq2seq(c, 0);
    Parameters& p = model->parameters();
    for (const Parameter& q : p.list()) set_parameter(p, q.name, g.floats("initial." + q.name));
    p.changed();
  }

  // The pairs of one step, as PyTorch had them but for the padding
  std::vector<CodedPair> pairs(int64_t step) const {
    const std::vector<int32_t> source = g.integers("source"), targets = g.integers("targets");
    std::vector<CodedPair> out;
    for (int64_t b = step * kB; b < (step + 1) * kB; ++b) {
      CodedPair pair;
      for (int64_t s = b * kS; s < (b + 1) * kS && source[static_cast<size_t>(s)] != 0; ++s)
        pair.source.push_back(source[static_cast<size_t>(s)]);
      for (int64_t t = b * kT; t < (b + 1) * kT && targets[static_cast<size_t>(t)] > 2; ++t)  // 2 ends it
        pair.target.push_back(targets[static_cast<size_t>(t)]);
      out.push_back(pair);
    }
    return out;
  }
  GradientSum::Result gradient_of_step(int64_t step, float smoothing, GradientSum& into) const {
    const std::vector<CodedPair> all = pairs(step);
    return into.compute(
        kB, kS,
        [&](int64_t first, int64_t count, const Pass& pass) {
          const auto some = std::span(all).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
          return model->loss(batch_of(some), pass, LossOptions(1, smoothing));
        },
        Pass{});
  }
  std::string named(const std::string& what) const { return norm + "." + what; }
  // Slice i of what the golden holds of a parameter: 0 the first gradient, 1 the value after ten steps
  std::vector<float> golden_of(const Parameter& q, size_t i) const {
    const std::vector<float> both = g.floats(named(q.name));
    const auto n = static_cast<size_t>(q.shape.volume());
    EXPECT_EQ(both.size(), 2 * n) << q.name;
    return {both.begin() + static_cast<std::ptrdiff_t>(i * n), both.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)};
  }

  std::string norm;
  Golden g;
  std::unique_ptr<Seq2Seq> model;
};

bool biases_keys(const std::string& name) { return name.find("k_proj.bias") != std::string::npos; }

// Rows [0, lengths[b]) of every b of (B,T,width): padding is not compared
std::vector<float> real_rows(std::span<const float> all, const std::vector<int64_t>& lengths, int64_t width) {
  std::vector<float> out;
  const int64_t T = static_cast<int64_t>(all.size()) / (kB * width);
  for (size_t b = 0; b < lengths.size(); ++b) {
    const auto rows = all.subspan(b * static_cast<size_t>(T * width), static_cast<size_t>(lengths[b] * width));
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

TEST_P(Transformer, BatchesArePaddedAlike) {
  const PairBatch batch = batch_of(pairs(0));
  EXPECT_EQ(batch.source.lengths, (std::vector<int64_t>{7, 3, 5}));
  EXPECT_EQ(batch.inputs.lengths, (std::vector<int64_t>{4, 6, 2}));
  auto first = [&](const char* name, size_t n) {
    std::vector<int32_t> all = g.integers(name);
    all.resize(n);
    return all;
  };
  EXPECT_EQ(batch.source.ids, first("source", kB * kS));
  EXPECT_EQ(batch.inputs.ids, first("inputs", kB * kT));
  EXPECT_EQ(batch.targets, first("targets", kB * kT));
}

TEST_P(Transformer, LogitsAndCrossAttentionFollowPyTorch) {
  const PairBatch batch = batch_of(pairs(0));
  Tensor pattern;
  Probe probe;
  probe.look("decoder.1.cross_attn.hook_pattern", [&](const Tensor& p) { pattern = p; });
  const Tensor logits = model->logits(batch);
  auto real = [&](const std::vector<float>& all, int64_t width) { return real_rows(all, batch.inputs.lengths, width); };
  auto compare = [&](const std::vector<float>& got, const std::string& name, int64_t width) {
    const std::vector<float> truth = real(g.floats(named(name + "_truth")), width);
    expect_within(real(got, width), truth, chain_bound(1, kForward, truth), named(name),
                  real(g.floats(named(name)), width));
  };
  compare(logits.to_vector(), "logits", 11);

  ASSERT_EQ(pattern.shape(), (Shape{kB, kHeads, kT, kS}));
  std::vector<float> mean;  // over heads, as need_weights gives it
  for (int64_t b = 0; b < kB; ++b)
    for (int64_t t = 0; t < kT; ++t)
      for (int64_t s = 0; s < kS; ++s)
        mean.push_back((pattern.row(b * kHeads * kT + t)[s] + pattern.row((b * kHeads + 1) * kT + t)[s]) / 2);
  compare(mean, "cross", kS);
}

TEST_P(Transformer, LossesAndGradientsFollowPyTorch) {
  GradientSum sum(*model);
  const std::vector<double> truth = g.doubles(named("loss_truth"));
  const std::vector<float> theirs = g.floats(named("loss"));
  const double logits_bound = chain_bound(1, kForward, g.floats(named("logits_truth")));
  const Parameters& p = model->parameters();
  for (size_t i : {1u, 0u}) {  // smoothed; plain, whose gradient stays
    const GradientSum::Result r = gradient_of_step(0, i ? kSmoothing : 0, sum);
    ASSERT_EQ(r.tokens, 4 + 6 + 2);
    // every target's loss is a difference of logits, and the errors of twelve add up like a random walk
    const double d = std::fabs(r.loss - truth[i]), bound = 2 * logits_bound * std::sqrt(12.0);
    EXPECT_LE(d, bound) << named("loss ") << i;
    std::printf("  %s: deviation %.2e (bound %.2e, PyTorch's own %.2e)\n", named(i ? "loss, smoothed" : "loss").c_str(),
                d, bound, std::fabs(static_cast<double>(theirs[i]) - truth[i]));
    if (i == 0) break;
    const std::vector<float> smoothed(sum.values(), sum.values() + sum.size());
    for (const Parameter& q : p.list()) {
      if (!g.has(named("gradient_smooth." + q.name))) continue;
      const std::vector<float> want = g.floats(named("gradient_smooth." + q.name));
      expect_within(gradient_of(p, smoothed, q.name), want, chain_bound(1, kBackward, want),
                    named("smoothed gradient of " + q.name));
    }
  }
  const std::vector<float> gradients(sum.values(), sum.values() + sum.size());
  double worst = 0;
  for (const Parameter& q : p.list()) {
    const std::vector<float> got = gradient_of(p, gradients, q.name), want = golden_of(q, 0);
    double scale = largest(want);
    if (biases_keys(q.name)) {
      // It moves all scores of a row alike, so its true gradient is 0, and what is left is rounding of the size of the
      // sums that cancel, which the queries' bias shows.
      std::string queries = q.name;
      scale = largest(gradient_of(p, gradients, queries.replace(queries.find("k_proj"), 6, "q_proj")));
    }
    const double d = largest_difference(got, want);
    EXPECT_LE(d, kEps * std::sqrt(static_cast<double>(kBackward)) * scale) << named(q.name);
    if (!biases_keys(q.name)) worst = std::max(worst, d / scale);
  }
  std::printf("  %s: largest deviation %.2e of a parameter's largest (bound %.2e, PyTorch's own %.2e)\n",
              named("gradients").c_str(), worst, kEps * std::sqrt(static_cast<double>(kBackward)),
              g.doubles(named("gradient_gap"))[0]);
}

TEST_P(Transformer, TenStepsFollowPyTorch) {
  Parameters& p = model->parameters();
  GradientSum sum(*model);
  AdamW adamw(p, AdamWOptions{});
  const std::vector<double> truth = g.doubles(named("losses_truth"));
  const std::vector<float> theirs = g.floats(named("losses"));
  const double logits_bound = chain_bound(1, kForward, g.floats(named("logits_truth")));
  double worst_loss = 0, their_worst = 0, loosest = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto i = static_cast<size_t>(step);
    const GradientSum::Result r = gradient_of_step(step, kSmoothing, sum);
    const double d = std::fabs(r.mean() - truth[i]);
    // as for one batch; that much again is room for the walk of ten updates
    const double bound = 2 * logits_bound / std::sqrt(static_cast<double>(r.tokens));
    EXPECT_LE(d, bound) << norm << " step " << step;
    worst_loss = std::max(worst_loss, d), loosest = std::max(loosest, bound);
    their_worst = std::max(their_worst, std::fabs(static_cast<double>(theirs[i]) - truth[i]));
    ASSERT_TRUE(adamw.step(sum.values(), r.tokens, 1e-3).finite);
  }
  std::printf("  %s losses: largest deviation %.2e (bound %.2e, PyTorch's own %.2e)\n", norm.c_str(), worst_loss,
              loosest, their_worst);

  // as in two_blocks_test.cc; the bias of keys moves by the sign of rounding alone, up to lr a step on either side
  const double gap = g.doubles(named("gap"))[0], moved = g.doubles(named("moved"))[0];
  double square = 0, worst = 0;
  for (const Parameter& q : p.list()) {
    const std::vector<float> want = golden_of(q, 1);
    const auto got = p.values_of(q);
    const double d = largest_difference(got, want);
    if (biases_keys(q.name)) {
      EXPECT_LE(d, 2 * 1e-3 * kSteps) << named(q.name);
      continue;
    }
    worst = std::max(worst, d);
    for (size_t i = 0; i < want.size(); ++i) square += (got[i] - want[i]) * (got[i] - want[i]);
  }
  EXPECT_LE(worst, 4 * gap) << norm;
  EXPECT_LE(std::sqrt(square), 2e-5 * moved) << norm;
  std::printf("  %s final weights: largest deviation %.2e (PyTorch's own %.2e), distance %.2e of %.3f moved\n",
              norm.c_str(), worst, gap, std::sqrt(square), moved);
}

INSTANTIATE_TEST_SUITE_P(Norms, Transformer, testing::Values("post", "pre"),
                         [](const auto& which) { return std::string(which.param); });

}  // namespace
}  // namespace bary::parity
