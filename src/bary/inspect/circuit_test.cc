// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/circuit.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"
#include "bary/inspect/capture.h"
#include "bary/inspect/gold_model_test.h"
#include "bary/tensor/ops.h"

namespace bary {
namespace {

using test::GoldModel;

const std::vector<int32_t> kIds{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1};  // two sequences of six

TEST(Scores, AreWhatTheSoftmaxOfEveryKindOfModelSees) {
  ModelConfig plain;
  plain.vocab_size = 11, plain.block_size = 6, plain.n_layer = 2, plain.n_head = 4, plain.n_embd = 16;
  ModelConfig shared = plain, rms = plain, bare = plain, post = plain;
  shared.n_kv_head = 2, shared.qkv_bias = true;
  rms.norm_kind = NormKind::rms, rms.norm = NormPlace::parallel;
  bare.norm = NormPlace::none, bare.pos = Position::sinusoidal, bare.scale = false;
  post.norm = NormPlace::post;
  for (const ModelConfig& c : {plain, shared, rms, bare, post}) {
    const LanguageModel model(c, 3);
    const auto patterns = attention_patterns(model, kIds, 2);
    for (int64_t layer : {0, 1}) {
      const Tensor s = attention_scores(model, layer, kIds, 2);
      const Tensor weights = softmax(masked(Tensor::from(Shape{8, 6, 6}, s.to_vector()), Mask::causal));
      const auto a = weights.to_vector(), b = patterns[static_cast<size_t>(layer)].to_vector();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
    }
  }
}

TEST(Scores, RefusePositionsThatAreNotInTheProjections) {
  ModelConfig c;
  c.vocab_size = 11, c.block_size = 6, c.n_head = 4, c.n_embd = 16;
  for (Position pos : {Position::rotary, Position::alibi}) {
    c.pos = pos;
    EXPECT_THROW(attention_scores(LanguageModel(c, 1), 0, kIds, 2), Error);
  }
  c.pos = Position::learned;
  EXPECT_THROW(attention_scores(LanguageModel(c, 1), 1, kIds, 2), Error);
}

TEST(Copying, IsCompleteInTheHeadThatWritesToTheOutput) {
  const auto ids = GoldModel::repeats(8, 2);
  const GoldModel model(std::ssize(ids));
  EXPECT_NEAR(copying_scores(*model, 1, ids)[0], 1, 1e-6);
  EXPECT_EQ(copying_scores(*model, 0, ids)[0], 0);  // writes where the unembedding does not read
}

TEST(Copying, OfFreshHeadsIsNearChance) {
  ModelConfig c;
  c.vocab_size = 50, c.block_size = 100, c.n_head = 2, c.n_embd = 64;
  const LanguageModel tied([&] { return c.tie_embeddings = true, c; }(), 1);
  const LanguageModel untied([&] { return c.tie_embeddings = false, c; }(), 1);
  std::vector<int32_t> ids(100);
  for (int32_t i = 0; i < 100; ++i) ids[static_cast<size_t>(i)] = i % 50;
  for (const LanguageModel* model : {&tied, &untied})
    for (double score : copying_scores(*model, 0, ids)) EXPECT_NEAR(score, 0.02, 0.02);
  EXPECT_THROW(copying_scores(tied, 1, ids), Error);
}

}  // namespace
}  // namespace bary
