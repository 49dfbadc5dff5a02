// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/sentence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "bary/base/parallel.h"

namespace bary {
namespace {

LanguageModel small(Arch arch, Position pos = Position::learned, NormPlace norm = NormPlace::pre) {
  ModelConfig c;
  c.arch = arch, c.vocab_size = 257, c.block_size = 40, c.n_embd = 32, c.n_head = 2, c.n_layer = 2;
  c.pos = pos, c.norm = norm;
  return LanguageModel(c, 3);
}

const std::vector<std::string> kTexts = {
    "to be or not to be", "x", "a longer text, of forty characters or so", "that is", "the question", "x", "no"};

std::vector<std::vector<float>> vectors(LanguageModel& model, const std::vector<std::string>& texts,
                                        const SentenceOptions& o = {}) {
  std::vector<std::vector<float>> out;
  for (Sentence& s : sentence_vectors(model, Tokenizer::bytes(), texts, o)) out.push_back(std::move(s.vector));
  return out;
}

std::string message(const std::function<void()>& f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Sentence, TheMeanOfTheTokensOrTheFirst) {
  LanguageModel model = small(Arch::encoder);
  const std::string text = "not to be";
  const auto ids = Tokenizer::bytes().encode(text);
  const Tensor h = model.hidden(ids, 1);
  const auto mean = sentence_vectors(model, Tokenizer::bytes(), {text})[0];
  const auto first = vectors(model, {text}, {.pooling = Pooling::first})[0];
  EXPECT_EQ(mean.ids, ids);
  ASSERT_EQ(mean.vector.size(), 32u);
  for (size_t c = 0; c < 32; ++c) {
    double sum = 0;
    for (int64_t t = 0; t < h.rows(); ++t) sum += static_cast<double>(h.row(t)[c]);
    EXPECT_EQ(mean.vector[c], static_cast<float>(sum / 9));
    EXPECT_EQ(first[c], h.row(0)[c]);
  }
}

TEST(Sentence, TheSameBitsAloneAndInCompany) {
  for (Arch arch : {Arch::encoder, Arch::decoder})
    for (Position pos : {Position::none, Position::learned, Position::sinusoidal, Position::rotary, Position::alibi})
      for (NormPlace norm : {NormPlace::pre, NormPlace::post}) {
        LanguageModel model = small(arch, pos, norm);
        const auto together = vectors(model, kTexts);
        for (size_t i = 0; i < kTexts.size(); ++i) EXPECT_EQ(vectors(model, {kTexts[i]})[0], together[i]) << kTexts[i];
        for (int64_t tokens : {1, 41, 90}) EXPECT_EQ(vectors(model, kTexts, {.batch_tokens = tokens}), together);
        EXPECT_EQ(together[1], together[5]);
        EXPECT_NE(together[1], together[0]);
      }
  for (Arch arch : {Arch::rnn, Arch::lstm, Arch::gru}) {
    LanguageModel model = small(arch);
    const auto together = vectors(model, kTexts);
    for (size_t i = 0; i < kTexts.size(); ++i) EXPECT_EQ(vectors(model, {kTexts[i]})[0], together[i]) << kTexts[i];
    EXPECT_EQ(vectors(model, {std::string(60, 'a')}).size(), 1u) << "a state has no table to end";
  }
}

TEST(Sentence, TheSameBitsOnAnyNumberOfThreads) {
  const int before = threads();
  std::vector<std::vector<std::vector<float>>> seen;
  for (int n : {1, 2, 3}) {
    set_threads(n);
    LanguageModel model = small(Arch::encoder);
    seen.push_back(vectors(model, kTexts));
  }
  set_threads(before);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(Sentence, SpecialTokensAreText) {
  LanguageModel model = small(Arch::encoder);
  EXPECT_EQ(sentence_vectors(model, Tokenizer::bytes({"[MASK]"}), {"[MASK]"})[0].ids.size(), 6u);
}

TEST(Sentence, LearnedPositionsEndAndOthersDoNot) {
  const std::string forty(40, 'a');
  LanguageModel model = small(Arch::encoder);
  EXPECT_EQ(vectors(model, {forty}).size(), 1u);
  const std::string refused = message([&] { vectors(model, {"a", forty + "b"}); });
  EXPECT_TRUE(has(refused, "text 2") && has(refused, "41 tokens") && has(refused, "40 positions")) << refused;
  for (Position pos : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi}) {
    LanguageModel endless = small(Arch::encoder, pos);
    EXPECT_EQ(vectors(endless, {forty + forty, "a"}).size(), 2u);
  }
}

TEST(Sentence, Refusals) {
  LanguageModel model = small(Arch::encoder), decoder = small(Arch::decoder);
  EXPECT_TRUE(vectors(model, {}).empty());
  EXPECT_TRUE(has(message([&] { vectors(model, {"a", "b", ""}); }), "text 3 is empty"));
  EXPECT_TRUE(has(message([&] { vectors(model, {"a"}, {.batch_tokens = 0}); }), "batch_tokens is 0"));
  const std::string first = message([&] { vectors(decoder, {"a"}, {.pooling = Pooling::first}); });
  EXPECT_TRUE(has(first, "arch=decoder") && has(first, "choose mean")) << first;
  ModelConfig c;
  c.arch = Arch::encoder, c.vocab_size = 200, c.n_embd = 8, c.n_head = 1, c.block_size = 4;
  LanguageModel narrow(c, 1);
  const std::string apart = message([&] { vectors(narrow, {"a"}); });
  EXPECT_TRUE(has(apart, "256") && has(apart, "200")) << apart;
}

TEST(Cosine, OfKnownAngles) {
  using V = std::vector<float>;
  EXPECT_EQ(cosine(V{1, 0}, V{0, 1}), 0.0);
  EXPECT_DOUBLE_EQ(cosine(V{1, 1}, V{1, 0}), 1 / std::sqrt(2.0));
  EXPECT_EQ(cosine(V{3, 4}, V{-3, -4}), -1.0);
  EXPECT_EQ(cosine(V{3e38f, 3e38f}, V{1e-38f, 1e-38f}), 1.0) << "lengths do not matter, however far apart";
  EXPECT_DOUBLE_EQ(cosine(V{1, 2, 3}, V{4, -5, 6}), 12 / std::sqrt(14.0 * 77.0));
}

TEST(Cosine, OfAVectorWithItselfIsExactlyOne) {
  LanguageModel model = small(Arch::encoder);
  const auto all = vectors(model, kTexts);
  for (const auto& a : all)
    for (const auto& b : all) {
      EXPECT_EQ(cosine(a, b), cosine(b, a));
      if (a == b) {
        EXPECT_EQ(cosine(a, b), 1.0);
      }
      EXPECT_LE(std::abs(cosine(a, b)), 1.0);
    }
}

TEST(Cosine, Refusals) {
  using V = std::vector<float>;
  EXPECT_TRUE(has(message([] { cosine(V{0, 0}, V{1, 0}); }), "first vector is all zeros"));
  EXPECT_TRUE(has(message([] { cosine(V{1, 0}, V{0, 0}); }), "second vector is all zeros"));
  EXPECT_TRUE(has(message([] { cosine(V{}, V{}); }), "all zeros"));
  EXPECT_TRUE(has(message([] { cosine(V{1}, V{1, 2}); }), "1 and 2 numbers"));
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(has(message([&] { cosine(V{1, nan}, V{1, 2}); }, ErrorKind::numeric), "first vector is not finite"));
  EXPECT_TRUE(has(message([&] { cosine(V{1, 1}, V{inf, 2}); }, ErrorKind::numeric), "second vector is not finite"));
}

}  // namespace
}  // namespace bary
