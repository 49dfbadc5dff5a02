// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/detect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bary/base/error.h"
#include "bary/inspect/capture.h"
#include "bary/inspect/gold_model_test.h"

namespace bary {
namespace {

using test::GoldModel;

Tensor uniform_pattern(int64_t B, int64_t H, int64_t T) {
  Tensor a = Tensor::zeros({B, H, T, T});
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int64_t j = 0; j <= r % T; ++j) a.row(r)[j] = 1.0f / static_cast<float>(r % T + 1);
  return a;
}

TEST(Entropy, CountsTheTokensARowLooksAt) {
  const std::vector<float> one{0, 0, 1, 0}, five(5, 0.2f), three{.5f, .25f, .25f};
  EXPECT_EQ(attention_entropy(one), 0);
  EXPECT_EQ(effective_tokens(one), 1);
  EXPECT_NEAR(effective_tokens(five), 5, 1e-6);
  EXPECT_NEAR(effective_tokens(three), 2.828427, 1e-6);
  EXPECT_EQ(attention_entropy({}), 0);
}

TEST(DetectorMask, ByHand) {
  const std::vector<int32_t> tokens{5, 7, 5, 5};
  EXPECT_EQ(detector_mask(HeadKind::previous, tokens),
            (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(detector_mask(HeadKind::duplicate, tokens),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0}));
  // The last 5 follows a 5 itself: j = i counts, j - 1 is earlier
  EXPECT_EQ(detector_mask(HeadKind::induction, tokens),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1}));
  EXPECT_TRUE(detector_mask(HeadKind::induction, {}).empty());
}

// Figures of the same hand-written model in double by NumPy: 1 and 1 for the two heads, 0.076 for uniform attention
TEST(RowMass, OfAKnownModel) {
  const auto ids = GoldModel::repeats(8, 2);
  const GoldModel model(std::ssize(ids));
  const auto layers = attention_patterns(*model, ids);
  ASSERT_EQ(layers.size(), 2u);
  const RowMass previous = row_mass(HeadKind::previous, layers[0], ids)[0];
  const RowMass induction = row_mass(HeadKind::induction, layers[1], ids)[0];
  EXPECT_NEAR(previous.score, 1, 1e-6);
  EXPECT_EQ(previous.rows, 16);
  EXPECT_NEAR(induction.score, 1, 1e-6);
  EXPECT_NEAR(induction.uniform, 0.076, 5e-4);
  EXPECT_EQ(induction.rows, 8);
  EXPECT_LT(row_mass(HeadKind::induction, layers[0], ids)[0].score, 0.01);
  EXPECT_LT(row_mass(HeadKind::previous, layers[1], ids)[0].score, 0.2);
}

TEST(RowMass, APerfectHeadThatSpreadsOverEarlierCopiesKeepsOne) {
  const auto ids = GoldModel::repeats(8, 4);
  const GoldModel model(std::ssize(ids));
  EXPECT_NEAR(row_mass(HeadKind::induction, attention_patterns(*model, ids)[1], ids)[0].score, 1, 1e-6);
}

TEST(RowMass, UniformAttentionScoresItsBaseline) {
  const std::vector<int32_t> ids{1, 2, 1, 2, 1, 3, 3, 3, 3, 3};  // two sequences of five
  for (HeadKind kind : {HeadKind::previous, HeadKind::duplicate, HeadKind::induction})
    for (const RowMass& m : row_mass(kind, uniform_pattern(2, 3, 5), ids)) EXPECT_NEAR(m.score, m.uniform, 1e-7);
  EXPECT_EQ(row_mass(HeadKind::duplicate, uniform_pattern(2, 3, 5), ids)[0].rows, 3 + 4);
  EXPECT_EQ(row_mass(HeadKind::duplicate, uniform_pattern(2, 3, 5), ids, 4)[0].rows, 1 + 1);
}

TEST(RowMass, WithoutTargetsThereIsNoScore) {
  const std::vector<int32_t> ids{1, 2, 3};
  const RowMass m = row_mass(HeadKind::induction, uniform_pattern(1, 1, 3), ids)[0];
  EXPECT_EQ(m.rows, 0);
  EXPECT_TRUE(std::isnan(m.score));
  EXPECT_THROW(row_mass(HeadKind::induction, uniform_pattern(1, 1, 4), ids), Error);
}

}  // namespace
}  // namespace bary
