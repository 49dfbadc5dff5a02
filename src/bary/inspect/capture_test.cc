// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/capture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bary/base/error.h"
#include "bary/inspect/circuit.h"
#include "bary/inspect/gold_model_test.h"

namespace bary {
namespace {

using test::GoldModel;

ModelConfig small() {
  ModelConfig c;
  c.vocab_size = 11, c.block_size = 6, c.n_layer = 2, c.n_head = 4, c.n_embd = 16;
  return c;
}
const std::vector<int32_t> kIds{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1};  // two sequences of six

TEST(Patterns, RowsSumToOneAndSeeNothingLater) {
  const LanguageModel model(small(), 1);
  const auto layers = attention_patterns(model, kIds, 2);
  ASSERT_EQ(layers.size(), 2u);
  for (const Tensor& a : layers) {
    ASSERT_EQ(a.shape(), (Shape{2, 4, 6, 6}));
    for (int64_t r = 0; r < a.rows(); ++r) {
      double sum = 0;
      for (int64_t j = 0; j < 6; ++j) {
        if (j > r % 6) {
          EXPECT_EQ(a.row(r)[j], 0);
        }
        sum += static_cast<double>(a.row(r)[j]);
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

TEST(Patterns, NeedAttention) {
  ModelConfig c = small();
  c.mixer = Mixer::average;
  EXPECT_THROW(attention_patterns(LanguageModel(c, 1), kIds, 2), Error);
  c.mixer = Mixer::attention, c.arch = Arch::lstm;
  const LanguageModel lstm(c, 1);
  try {
    attention_patterns(lstm, kIds, 2);
    ADD_FAILURE() << "an LSTM has patterns";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_NE(std::string(e.what()).find("arch=lstm"), std::string::npos) << e.what();
  }
  EXPECT_THROW(copying_scores(lstm, 0, kIds, 2), Error);
  EXPECT_THROW(attention_scores(lstm, 0, kIds, 2), Error);
  Probe probe;
  EXPECT_THROW(switch_off(probe, lstm, 0, std::vector<int64_t>{0}), Error);
}

// -log p of the second copy's tokens that can be known
double second_copy_loss(const LanguageModel& model, const std::vector<int32_t>& ids, int64_t n) {
  const Tensor logits = model.logits(ids, 1);
  double sum = 0;
  for (int64_t t = n + 1; t + 1 < std::ssize(ids); ++t) {
    double total = 0;
    for (int64_t v = 0; v < logits.channels(); ++v) total += std::exp(static_cast<double>(logits.row(t)[v]));
    sum += std::log(total) - static_cast<double>(logits.row(t)[ids[static_cast<size_t>(t + 1)]]);
  }
  return sum / static_cast<double>(n - 1);
}

// Figures of the same hand-written model in double by NumPy: 0.000499 whole, 10.0 without the previous-token head
TEST(SwitchOff, BreaksTheCircuitOfAKnownModel) {
  const auto ids = GoldModel::repeats(8, 2);
  const GoldModel model(std::ssize(ids));
  EXPECT_NEAR(second_copy_loss(*model, ids, 8), 0.000499, 1e-5);
  const std::vector<int64_t> head{0};
  for (int64_t layer : {0, 1}) {
    Probe probe;
    switch_off(probe, *model, layer, head);
    EXPECT_GT(second_copy_loss(*model, ids, 8), layer == 0 ? 9.9 : 2.0) << "layer " << layer;
  }
  EXPECT_NEAR(second_copy_loss(*model, ids, 8), 0.000499, 1e-5);  // only while the probe lives
}

TEST(SwitchOff, LeavesTheOtherHeadsAndTheBiasAlone) {
  ModelConfig c = small();
  c.n_layer = 1, c.mlp = MlpKind::none, c.norm = NormPlace::none;
  const LanguageModel model(c, 1);
  auto mid = [&](std::vector<int64_t> off) {
    Tensor before, after;
    Probe probe;
    switch_off(probe, model, 0, off);
    probe.look("blocks.0.hook_resid_pre", [&](const Tensor& x) { before = x; });
    probe.look("blocks.0.hook_resid_mid", [&](const Tensor& x) { after = x; });
    model.hidden(kIds, 2);
    return (after + before * -1.0f).to_vector();
  };
  const auto none = mid({}), all = mid({0, 1, 2, 3});
  const Parameter& bias = *model.parameters().find("transformer.h.0.attn.out_proj.bias");
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], model.parameters().values_of(bias)[i % 16], 1e-6);
  // What the heads write adds up: whole = sum over heads of (head alone - bias) + bias
  std::vector<double> sum(all.begin(), all.end());
  for (int64_t h = 0; h < 4; ++h) {
    std::vector<int64_t> others;
    for (int64_t o = 0; o < 4; ++o)
      if (o != h) others.push_back(o);
    const auto alone = mid(others);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(alone[i]) - static_cast<double>(all[i]);
  }
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], none[i], 2e-6);
}

TEST(SwitchOff, IsSeenByWhoLooksFurtherIn) {
  ModelConfig c = small();
  c.pos = Position::sinusoidal;
  const LanguageModel model(c, 1);
  const auto intact = attention_patterns(model, kIds, 2);
  const auto scores = attention_scores(model, 1, kIds, 2).to_vector();
  const auto copying = copying_scores(model, 1, kIds, 2);
  Probe probe;
  switch_off(probe, model, 0, std::vector<int64_t>{2});
  const auto left = attention_patterns(model, kIds, 2);
  ASSERT_EQ(left[0].shape(), intact[0].shape());
  for (int64_t r = 0; r < left[0].rows(); ++r)
    for (int64_t j = 0; j < 6; ++j)
      EXPECT_NEAR(left[0].row(r)[j], r / 6 % 4 == 2 ? 0 : intact[0].row(r)[j], 1e-6) << "row " << r;
  EXPECT_NE(left[1].to_vector(), intact[1].to_vector());  // computed from what is left
  EXPECT_NE(attention_scores(model, 1, kIds, 2).to_vector(), scores);
  EXPECT_NE(copying_scores(model, 1, kIds, 2), copying);
}

TEST(SwitchOff, RefusesWhatIsNotThere) {
  const LanguageModel model(small(), 1);
  Probe probe;
  EXPECT_THROW(switch_off(probe, model, 2, std::vector<int64_t>{0}), Error);
  EXPECT_THROW(switch_off(probe, model, 0, std::vector<int64_t>{4}), Error);
}

}  // namespace
}  // namespace bary
