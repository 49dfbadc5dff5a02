// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/tokenizer.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"

namespace bary {
namespace {

const std::string kText = [] {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "the cat and <|end|> the hat, naïve as ever\n";
  return text;
}();
const BpeOptions kOptions{.vocab_size = 270, .specials = {"<|end|>"}};

TEST(TokenizerBench, FiguresAreThoseOfTheText) {
  const TokenizerFigures f = measure_tokenizer(kText, kOptions, nullptr, 2);
  const LearningTimes learning = time_learning(kText, kOptions, 1);
  const Tokenizer tokenizer = Tokenizer::bpe(learning.training, kOptions);
  EXPECT_EQ(f.bytes, static_cast<int64_t>(kText.size()));
  EXPECT_EQ(f.merges, 270 - 256 - 1);
  EXPECT_EQ(f.ids, tokenizer.count(kText, SpecialPolicy::as_text()));
  for (double figure : {f.learn_seconds, f.cold_mb_s, f.encode_mb_s, f.decode_mb_s, f.repeated_seconds,
                        f.repeated_ten_times_seconds, f.growth()})
    EXPECT_GT(figure, 0);
}

TEST(TokenizerBench, AGivenTokenizerCodesInsteadOfTheLearnedOne) {
  const Tokenizer bytes = Tokenizer::bytes();
  EXPECT_EQ(measure_tokenizer(kText, kOptions, &bytes, 2).ids, static_cast<int64_t>(kText.size()));
}

TEST(TokenizerBench, AllTimesAreToldAndIdsAreEncodes) {
  const LearningTimes learning = time_learning(kText, kOptions, 3);
  EXPECT_EQ(learning.seconds.size(), 3u);
  const Tokenizer tokenizer = Tokenizer::bpe(learning.training, kOptions);
  const CodingTimes coding = time_encoding(tokenizer, kText, 4);
  EXPECT_EQ(coding.seconds.size(), 4u);
  EXPECT_EQ(coding.ids, tokenizer.encode(kText, SpecialPolicy::as_text()));
  EXPECT_EQ(time_decoding(tokenizer, kText, 5).size(), 5u);
}

TEST(TokenizerBench, WhatCantBeTimedIsRefused) {
  EXPECT_THROW(measure_tokenizer("", kOptions, nullptr, 2), Error);
  EXPECT_THROW(measure_tokenizer(kText, kOptions, nullptr, 1), Error);
  const Tokenizer letters = Tokenizer::characters("xyz");
  EXPECT_THROW(measure_tokenizer(kText, kOptions, &letters, 2), Error);
}

TEST(TokenizerBench, HashIsOfLittleEndianWords) {
  // printf '\x01\0\0\0\x00\x01\0\0' | sha256sum
  EXPECT_EQ(ids_sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ids_sha256({1, 256}), "242045e2f1bb37769b514f182fd91b3d215324cb57f187cced1e9c62921dbac3");
  EXPECT_NE(ids_sha256({1, 256}), ids_sha256({256, 1}));
}

}  // namespace
}  // namespace bary
