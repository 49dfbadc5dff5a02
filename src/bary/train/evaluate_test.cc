// SPDX-License-Identifier: Apache-2.0
#include "bary/train/evaluate.h"

#include <bit>

#include "bary/train/chosen.h"
#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

TEST(Evaluate, IsTheSumOverWindows) {
  LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(8 * 5 + 4, 29);  // five windows, and three targets more
  double full = 0, rest = 0;
  for (size_t w = 0; w < 6; ++w) {
    const size_t n = w < 5 ? 8 : 3;
    const double sum = model.loss(std::span(ids).subspan(w * 8, n), std::span(ids).subspan(w * 8 + 1, n), 1).sum;
    (w < 5 ? full : rest) += sum;
  }
  const Evaluation whole = evaluate_all(model, ids, {}, true), all = evaluate_all(model, ids, {}, false);
  EXPECT_EQ(whole.tokens, 40);
  EXPECT_EQ(whole.loss_sum, full);
  EXPECT_EQ(all.tokens, 43) << "every target once";
  EXPECT_EQ(all.loss_sum, full + rest);
  EXPECT_EQ(all.loss(), all.loss_sum / 43);
  EXPECT_NEAR(all.perplexity(), std::exp(all.loss()), 1e-12 * all.perplexity());
  EXPECT_EQ(all.bytes, 0);
  EXPECT_EQ(all.bits_per_byte(), 0) << "not known";
}

TEST(Evaluate, DoesNotDependOnHowItIsCut) {  // T34
  LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(8 * 100 + 1, 29);
  const auto bits = [&](const EvaluationProgress& progress) {
    return std::bit_cast<uint64_t>(evaluate_all(model, ids, {}, true, progress).loss_sum);
  };
  const uint64_t plain = bits({});
  int64_t last = 0, calls = 0;
  EXPECT_EQ(bits([&](int64_t done, int64_t total) {
              EXPECT_EQ(total, 100);
              EXPECT_GT(done, last);
              last = done, ++calls;
            }),
            plain);
  EXPECT_EQ(last, 100);
  EXPECT_GT(calls, 1);
  for (int n : {1, 2, 3}) {
    Threads limit(n);
    EXPECT_EQ(bits({}), plain) << n << " threads";
  }
  // windows side by side in one call have the bits they have alone
  const std::vector<int32_t> in(ids.begin(), ids.begin() + 24), out(ids.begin() + 1, ids.begin() + 25);
  double alone = 0;
  for (size_t w = 0; w < 3; ++w)
    alone += model.loss(std::span(in).subspan(w * 8, 8), std::span(out).subspan(w * 8, 8), 1).sum;
  EXPECT_NEAR(model.loss(in, out, 3).sum, alone, 1e-12 * alone);
}

TEST(Evaluate, SomeWindowsAreNamedBySeed) {
  LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(500, 29);
  const Evaluation a = evaluate_some(model, ids, {}, 7, 42), again = evaluate_some(model, ids, {}, 7, 42);
  EXPECT_EQ(a.tokens, 56);
  EXPECT_EQ(a.loss_sum, again.loss_sum);
  EXPECT_NE(a.loss_sum, evaluate_some(model, ids, {}, 7, 43).loss_sum);
  const double two = evaluate_some(model, ids, {}, 2, 42).loss_sum,
               three = evaluate_some(model, ids, {}, 3, 42).loss_sum;
  EXPECT_GT(three, two) << "more windows go on from the same ones";
  EXPECT_LT(three, a.loss_sum);
  EXPECT_EQ(evaluate_some(model, std::span(ids).first(9), {}, 4, 42).tokens, 32) << "one window, as often as asked";
}

TEST(Evaluate, BitsPerByteCountWhatTargetsStandFor) {
  LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(17, 29);
  std::vector<int32_t> bytes(29);
  int64_t want = 0;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<int32_t>(1 + i % 4);
  for (size_t i = 1; i < ids.size(); ++i) want += bytes[static_cast<size_t>(ids[i])];
  const Evaluation e = evaluate_all(model, ids, bytes, true);
  EXPECT_EQ(e.bytes, want);
  EXPECT_NEAR(e.bits_per_byte(), e.loss_sum / std::log(2.0) / static_cast<double>(want), 1e-12);
}

TEST(Evaluate, DropoutIsOff) {
  ModelConfig c = small_model();
  LanguageModel plain(c, 3);
  c.dropout = 0.5;
  LanguageModel dropping(c, 3);
  const std::vector<int32_t> ids = random_ids(100, 29);
  EXPECT_EQ(evaluate_all(plain, ids, {}, true).loss_sum, evaluate_all(dropping, ids, {}, true).loss_sum);
}

TEST(Evaluate, TooShortATextIsRefusedWithBothNumbers) {
  LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(8, 29);
  const std::string whole = message([&] { evaluate_all(model, ids, {}, true); });
  EXPECT_TRUE(has(whole, "8") && has(whole, "9")) << whole;
  const std::string some = message([&] { evaluate_some(model, ids, {}, 1, 42); });
  EXPECT_TRUE(has(some, "8") && has(some, "9")) << some;
  EXPECT_EQ(evaluate_all(model, ids, {}, false).tokens, 7) << "a shorter window does where that is allowed";
}

TEST(Judged, ATargetBeyondTheVocabularyIsRefused) {
  const Tensor logits = Tensor::zeros({1, 2, 5});
  for (const std::vector<int32_t>& targets : {std::vector<int32_t>{0, 5}, {5000, 1}, {1}})
    EXPECT_THROW(judged(logits, targets), Error);
  EXPECT_EQ(judged(logits, std::vector<int32_t>{4, -1}).tokens, 1);
}

}  // namespace
}  // namespace bary
