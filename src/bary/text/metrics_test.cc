// SPDX-License-Identifier: Apache-2.0
#include "bary/text/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bary/base/error.h"
#include "bary/base/refusal_test.h"
#include "bary/text/metrics_cases_test.h"
#include "bary/text/ngram_matches.h"

namespace bary {
namespace {

using Lines = std::vector<std::string>;

void expect_share(Share got, int64_t right, int64_t total) {
  EXPECT_EQ(got.right, right);
  EXPECT_EQ(got.total, total);
}

// Scores are an exp of a mean of four logs, or a handful of divisions: 8 roundings, and exp's argument is below 5.
void expect_near(double got, double want, const std::string& what) {
  EXPECT_TRUE(std::abs(got - want) <= 8 * 5 * 0x1p-53 * want) << what << ": " << got << " instead of " << want;
}

TEST(Metrics, ListsMustCorrespond) {
  const Lines none, one{"a"}, two{"a", "b"};
  EXPECT_NE(message_of([&] { exact_match(two, one); }).find("there are 2 texts but 1 references"), std::string::npos);
  EXPECT_NE(message_of([&] { corpus_bleu(none, none); }).find("BLEU: there are no texts"), std::string::npos);
  EXPECT_NE(message_of([&] { corpus_chrf(one, two); }).find("chrF: "), std::string::npos);
  message_of([&] { word_accuracy(none, none); });
  message_of([&] { character_accuracy(one, none); });
  message_of([&] { score_texts(one, none); });
}

TEST(Metrics, ExactMatchCountsBytes) {
  expect_share(exact_match(Lines{"", "a", "b ", "\xc3\xa9"}, Lines{"", "a", "b", "e\xcc\x81"}), 2, 4);
}

TEST(Metrics, CharactersAreCodePointsAtTheirPlace) {
  expect_share(character_accuracy(Lines{""}, Lines{""}), 0, 0);
  EXPECT_EQ(character_accuracy(Lines{""}, Lines{""}).value(), 1);
  expect_share(character_accuracy(Lines{""}, Lines{"abc"}), 0, 3);
  expect_share(character_accuracy(Lines{"abcde"}, Lines{"abc"}), 3, 5);
  expect_share(character_accuracy(Lines{"xabc"}, Lines{"abc"}), 0, 4);
  expect_share(character_accuracy(Lines{"n\xc3\xa9!", "a"}, Lines{"n\xc3\xa9?", "a"}), 3, 4);
  expect_share(character_accuracy(Lines{"a\xff"}, Lines{"a\xfe"}), 2, 2);  // both U+FFFD
  EXPECT_EQ(character_accuracy(Lines{"ab"}, Lines{"ac"}).value(), 0.5);
}

TEST(Metrics, WordsKeepTheirPunctuation) {
  expect_share(word_accuracy(Lines{""}, Lines{" "}), 0, 0);
  expect_share(word_accuracy(Lines{"hear me speak"}, Lines{"Hear me speak."}), 1, 3);
  expect_share(word_accuracy(Lines{" hear  me\xc2\xa0speak\n"}, Lines{"hear me speak"}), 3, 3);
  expect_share(word_accuracy(Lines{"hear me"}, Lines{"hear me speak now"}), 2, 4);
  expect_share(word_accuracy(Lines{"a b c", "d"}, Lines{"a c", "d"}), 2, 4);
}

TEST(Metrics, SplitWords) {
  EXPECT_TRUE(split_words("").empty());
  EXPECT_TRUE(split_words(" \t\r\n\x1c\xe3\x80\x80").empty());
  const std::vector<std::string_view> want{"a",
                                           "\xe2\x80\x8b"
                                           "b",
                                           "\xff"};  // U+200B is no white space
  EXPECT_EQ(split_words("a\x1f\xe2\x80\x8b"
                        "b\xe2\x80\xa8\xff"),
            want);
}

TEST(Metrics, NgramsMatchAsOftenAsBothHaveThem) {
  const std::vector<uint32_t> left{1, 1, 1, 2}, right{1, 1, 2, 1, 1}, none;
  const auto expect = [](NgramCounts got, int64_t of_left, int64_t of_right, int64_t matched) {
    EXPECT_EQ(got.left, of_left);
    EXPECT_EQ(got.right, of_right);
    EXPECT_EQ(got.matched, matched);
  };
  expect(ngram_matches(none, right, 1), 0, 5, 0);
  expect(ngram_matches(left, right, 1), 4, 5, 4);
  expect(ngram_matches(left, right, 2), 3, 4, 3);
  expect(ngram_matches(left, right, 3), 2, 3, 1);
  expect(ngram_matches(left, right, 4), 1, 2, 0);
  expect(ngram_matches(left, right, 5), 0, 1, 0);
}

TEST(Metrics, TheReferenceToolsNumbers) {
  for (const test::MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(tokens_13a(c.hypotheses[0]), c.first_tokens);
    const BleuScore bleu = corpus_bleu(c.hypotheses, c.references);
    expect_near(bleu.score, c.bleu, "BLEU");
    expect_near(bleu.brevity_penalty, c.brevity_penalty, "brevity penalty");
    EXPECT_EQ(bleu.precisions, c.precisions);
    EXPECT_EQ(bleu.matched, c.matched);
    EXPECT_EQ(bleu.total, c.total);
    EXPECT_EQ(bleu.hypothesis_length, c.hypothesis_length);
    EXPECT_EQ(bleu.reference_length, c.reference_length);
    const ChrfScore chrf = corpus_chrf(c.hypotheses, c.references);
    expect_near(chrf.score, c.chrf, "chrF");
    EXPECT_EQ(chrf.matched, c.chrf_matched);
    EXPECT_EQ(chrf.hypothesis, c.chrf_hypothesis);
    EXPECT_EQ(chrf.reference, c.chrf_reference);
  }
}

TEST(Metrics, ChrfParts) {
  const ChrfScore same = corpus_chrf(Lines{"abcdef"}, Lines{"abcdef"});
  EXPECT_EQ(same.precision, 1);
  EXPECT_EQ(same.recall, 1);
  const ChrfScore part = corpus_chrf(Lines{"a"}, Lines{"ab"});  // only single characters on both sides
  EXPECT_EQ(part.precision, 1);
  EXPECT_EQ(part.recall, 0.5);
  expect_near(part.score, 100 * 2.5 / 4.5, "chrF");
}

TEST(Metrics, InvalidBytesAreScoredAsReplacementCharacters) {
  const Lines broken{"caf\xe9 au lait pour moi"}, replaced{"caf\xef\xbf\xbd au lait pour moi"};
  EXPECT_EQ(corpus_bleu(broken, replaced).matched, (std::array<int64_t, 4>{5, 4, 3, 2}));
  EXPECT_EQ(corpus_chrf(broken, replaced).score, 100);
}

TEST(Metrics, AllTogether) {
  const Lines hypotheses{"Hear me speak, Sir.", "no"}, references{"Hear me speak, sir.", "no"};
  const TextScores scores = score_texts(hypotheses, references);
  expect_share(scores.exact, 1, 2);
  expect_share(scores.words, 4, 5);
  expect_share(scores.characters, 20, 21);
  EXPECT_EQ(scores.bleu.score, corpus_bleu(hypotheses, references).score);
  EXPECT_EQ(scores.chrf.score, corpus_chrf(hypotheses, references).score);
  EXPECT_GT(scores.bleu.score, 0);
}

}  // namespace
}  // namespace bary
