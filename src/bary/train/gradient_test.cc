// SPDX-License-Identifier: Apache-2.0
#include "bary/train/gradient.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "bary/tensor/tape.h"
#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

constexpr int64_t kT = 8;

struct Batch {
  explicit Batch(int64_t sequences, uint64_t seed = 1)
      : inputs(random_ids(sequences * kT, 29, seed)), targets(random_ids(sequences * kT, 29, seed + 100)) {}
  LossOf losses(const LanguageModel& model) const { return window_losses(model, kT, source()); }
  SequenceSource source() const {
    return [this](int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
      std::copy_n(inputs.begin() + s * kT, kT, in.begin());
      std::copy_n(targets.begin() + s * kT, kT, out.begin());
    };
  }
  std::vector<int32_t> inputs, targets;
};

double distance(std::span<const float> a, std::span<const float> b) {
  double m = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - b[i]);
    m = d <= m ? m : std::isnan(d) ? HUGE_VAL : d;
  }
  return m;
}
double largest(std::span<const float> a) {
  double m = 0;
  for (float x : a) m = std::max(m, std::fabs(static_cast<double>(x)));
  return m;
}
std::span<const float> span_of(const GradientSum& g) { return {g.values(), static_cast<size_t>(g.size())}; }

TEST(Gradient, IsThatOfOneLossOverAllSequences) {
  LanguageModel model(small_model(), 3);
  for (int64_t B : {1, 3, 16, 40}) {
    Batch batch(B);
    GradientSum gradient(model);
    auto r = gradient.compute(B, kT, batch.losses(model), Pass{});
    std::vector<float> at_once(static_cast<size_t>(gradient.size()), 0.0f);
    Tape tape(at_once.data());
    LossSum loss = model.loss(batch.inputs, batch.targets, B);
    tape.backward(loss.loss);
    EXPECT_EQ(r.tokens, B * kT);
    EXPECT_NEAR(r.loss, loss.sum, 1e-12 * loss.sum) << "the same terms, in another order of doubles";
    // the rows are summed in other groups: rounding of sums over B T rows
    EXPECT_LE(distance(span_of(gradient), at_once),
              4 * 0x1p-24 * std::sqrt(static_cast<double>(B * kT)) * largest(at_once));
  }
}

TEST(Gradient, CountsTokensAndNotBatches) {  // T10: losses {4} and {1,1,1} mean 7/4, not the mean of the means
  LanguageModel model(small_model(), 3);
  Batch batch(2);
  std::fill(batch.targets.begin() + 1, batch.targets.begin() + kT, -1);  // one target in the first sequence,
  std::fill(batch.targets.begin() + kT + 3, batch.targets.end(), -1);    // three in the second
  GradientSum gradient(model);
  auto r = gradient.compute(2, kT, batch.losses(model), Pass{});
  EXPECT_EQ(r.tokens, 4);
  double sum = 0;
  for (int64_t s : {0, 1}) {
    auto at = static_cast<size_t>(s * kT);
    sum += model.loss(std::span(batch.inputs).subspan(at, kT), std::span(batch.targets).subspan(at, kT), 1).sum;
  }
  EXPECT_EQ(r.loss, sum);
  EXPECT_EQ(r.mean(), sum / 4);
}

TEST(Gradient, MaskedTargetsAddExactlyNothing) {  // T12
  LanguageModel model(small_model(), 3);
  Batch batch(3);
  GradientSum alone(model), masked(model);
  alone.compute(2, kT, batch.losses(model), Pass{});
  std::fill(batch.targets.begin() + 2 * kT, batch.targets.end(), -1);
  auto r = masked.compute(3, kT, batch.losses(model), Pass{});
  EXPECT_EQ(r.tokens, 2 * kT);
  EXPECT_EQ(distance(span_of(alone), span_of(masked)), 0);
  std::fill(batch.targets.begin(), batch.targets.end(), -1);
  r = masked.compute(3, kT, batch.losses(model), Pass{});
  EXPECT_EQ(r.tokens, 0);
  EXPECT_EQ(r.loss, 0);
  EXPECT_EQ(r.mean(), 0) << "not 0/0";
  EXPECT_EQ(largest(span_of(masked)), 0);
}

TEST(Gradient, TheSecondComputationStartsFromZero) {
  LanguageModel model(small_model(), 3);
  Batch batch(5);
  GradientSum twice(model), once(model);
  twice.compute(5, kT, Batch(5, 9).losses(model), Pass{});
  twice.compute(5, kT, batch.losses(model), Pass{});
  once.compute(5, kT, batch.losses(model), Pass{});
  EXPECT_EQ(distance(span_of(twice), span_of(once)), 0);
}

TEST(Gradient, LargeModelsAndShortGroupsOfMiddlingOnesGoLayerByLayer) {
  auto by_layer = [](const char* name, int64_t sequences, int64_t T) {
    return plan_gradient(preset(name), Traversal::automatic, sequences, T, 0).by_layer;
  };
  EXPECT_FALSE(by_layer("block", 64, 128));
  EXPECT_FALSE(by_layer("block", 64, 8));       // its gradient stays in a cache
  EXPECT_TRUE(by_layer("annotated", 80, 10));   // 14.7 million parameters, 40 rows a group
  EXPECT_FALSE(by_layer("annotated", 64, 64));  // 256 rows
  EXPECT_TRUE(by_layer("gpt2", 4, 64));
}

TEST(Gradient, SequencesAreNumberedOverTheWholeStep) {
  auto per_group = [](int64_t sequences, int64_t T) {
    ModelConfig c = small_model();
    c.block_size = T;
    return plan_gradient(c, Traversal::automatic, sequences, T, 0).per_group;
  };
  EXPECT_EQ(per_group(1, 16), 1);
  EXPECT_EQ(per_group(31, 16), 1);
  EXPECT_EQ(per_group(32, 16), 2);
  EXPECT_EQ(per_group(64, 128), 4);
  EXPECT_EQ(per_group(100000, 128), 4);
  EXPECT_EQ(per_group(64, 256), 2);
  EXPECT_EQ(per_group(64, 1024), 1);
  // dropout's masks are named by the sequence's number: the second of two is the one that begins at 1
  ModelConfig c = small_model();
  c.dropout = 0.3;
  LanguageModel model(c, 3);
  Batch batch(2);
  Pass pass;
  pass.training = true, pass.seed = 5, pass.step = 2;
  GradientSum both(model), first(model), second(model);
  auto r = both.compute(2, kT, batch.losses(model), pass);
  auto r1 = first.compute(1, kT, batch.losses(model), pass);
  pass.sequence = 1;
  auto r2 = second.compute(
      1, kT, [&](int64_t, int64_t count, const Pass& mine) { return batch.losses(model)(1, count, mine); }, pass);
  EXPECT_EQ(r.loss, r1.loss + r2.loss);
  std::vector<float> sum(static_cast<size_t>(first.size()));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = first.values()[i] + second.values()[i];
  EXPECT_EQ(distance(span_of(both), sum), 0);
}

// Both ways through the ops: the same sums in the same order.
TEST(Gradient, DepthFirstAndLayerByLayerGiveTheSameBits) {
  for (NormPlace norm : {NormPlace::pre, NormPlace::parallel}) {
    for (MlpKind mlp : {MlpKind::gelu, MlpKind::swiglu}) {
      for (Position pos : {Position::learned, Position::rotary}) {
        ModelConfig c = small_model();
        c.norm = norm, c.mlp = mlp, c.pos = pos, c.dropout = 0.2, c.n_layer = 2, c.qkv_bias = true;
        if (mlp == MlpKind::swiglu) c.norm_kind = NormKind::rms, c.mixer = Mixer::average;
        LanguageModel model(c, 3);
        Pass pass;
        pass.training = true, pass.seed = 5, pass.step = 2;
        for (int64_t B : {1, 3, 40}) {  // groups of one and of two sequences
          Batch batch(B);
          batch.targets[3] = -1;
          GradientSum deep(model, Traversal::depth_first);
          const auto r = deep.compute(B, kT, batch.losses(model), pass);
          for (int64_t together : {0, 1, 5}) {
            GradientSum wide(model, Traversal::layer_by_layer, together);
            const auto w = wide.compute(B, kT, batch.losses(model), pass);
            EXPECT_EQ(w.loss, r.loss);
            EXPECT_EQ(w.tokens, r.tokens);
            EXPECT_EQ(0, std::memcmp(deep.values(), wide.values(), static_cast<size_t>(deep.size()) * 4))
                << fmt::format("{} sequences, {} together, norm {}", B, together, static_cast<int>(norm));
          }
        }
      }
    }
  }
}

// Wide enough for weights that are packed on their way, and for products in several blocks.
TEST(Gradient, LargeWeightsGiveTheSameBitsBothWays) {
  ModelConfig c = small_model();
  c.n_embd = 272, c.n_head = 4, c.n_layer = 1;
  for (MlpKind mlp : {MlpKind::gelu, MlpKind::swiglu}) {
    c.mlp = mlp;
    LanguageModel model(c, 3);
    Batch batch(20);
    GradientSum deep(model, Traversal::depth_first), wide(model, Traversal::layer_by_layer);
    const auto r = deep.compute(20, kT, batch.losses(model), Pass{});
    const auto w = wide.compute(20, kT, batch.losses(model), Pass{});
    EXPECT_EQ(w.loss, r.loss);
    EXPECT_EQ(0, std::memcmp(deep.values(), wide.values(), static_cast<size_t>(deep.size()) * 4));
  }
}

TEST(Gradient, NoSequencesAreRefused) {
  LanguageModel model(small_model(), 3);
  GradientSum gradient(model);
  EXPECT_TRUE(has(message([&] { gradient.compute(0, kT, Batch(1).losses(model), Pass{}); }), "0 sequences"));
}

TEST(Gradient, ATargetOutsideTheVocabularyIsSaidFromAnyThread) {
  LanguageModel model(small_model(), 3);
  Batch batch(20);
  batch.targets[77] = 29;
  GradientSum gradient(model);
  EXPECT_TRUE(has(message([&] { gradient.compute(20, kT, batch.losses(model), Pass{}); }), "target 29"));
  batch.targets[77] = 1;
  EXPECT_NO_THROW(gradient.compute(20, kT, batch.losses(model), Pass{})) << "and the next step works";
}

TEST(Gradient, NotANumberStaysOne) {  // no fast-math anywhere on the way (T14)
  LanguageModel model(small_model(), 3);
  model.parameters().values()[0] = std::numeric_limits<float>::quiet_NaN();
  model.parameters().changed();
  Batch batch(2);
  batch.inputs[0] = 0;  // the row with the NaN
  GradientSum gradient(model);
  auto r = gradient.compute(2, kT, batch.losses(model), Pass{});
  EXPECT_TRUE(std::isnan(r.loss));
  EXPECT_NE(first_not_finite(model.parameters(), gradient.values()), "");
}

}  // namespace
}  // namespace bary
