// SPDX-License-Identifier: Apache-2.0
#include "bary/text/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "bary/base/error.h"
#include "bary/base/refusal_test.h"

namespace bary {
namespace {

constexpr SyntheticSplit kTraining = SyntheticSplit::training, kHeldOut = SyntheticSplit::held_out;

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  size_t begin = 0;
  for (size_t space; (space = line.find(' ', begin)) != std::string::npos; begin = space + 1) {
    words.push_back(line.substr(begin, space - begin));
  }
  words.push_back(line.substr(begin));
  return words;
}

struct Sentence {
  std::string x, y, adjective, ref;
};

Sentence parse(const SyntheticLanguage& language, const SyntheticSequence& sequence) {
  const std::vector<std::string> w = words_of(language.words(sequence.tokens));
  EXPECT_EQ(w.size(), 18u);
  std::vector<std::string> frame = w;
  frame[1] = "{x}", frame[6] = "{y}", frame[11] = "{adj}", frame[15] = "{ref}";
  std::string text;
  for (const std::string& word : frame) text += word + " ";
  EXPECT_EQ(text, "the {x} did not cross the {y} because it was too {adj} , so the {ref} waited . ");
  return {w[1], w[6], w[11], w[15]};
}

const std::set<std::string> kCrosser{"tired", "scared", "slow", "weak"}, kCrossed{"wet", "wide", "busy", "steep"};

void check_sentences(const SyntheticLanguage& language, SyntheticSplit split) {
  std::set<std::vector<int32_t>> different;
  for (int64_t i = 0; i < language.count(split); ++i) {
    const SyntheticSequence one = language.listed(split, i);
    const Sentence s = parse(language, one);
    EXPECT_TRUE(kCrosser.contains(s.adjective) != kCrossed.contains(s.adjective));
    EXPECT_EQ(s.ref, kCrosser.contains(s.adjective) ? s.x : s.y);
    EXPECT_EQ(one.answer, 15);
    EXPECT_EQ(language.vocabulary()[size_t(one.wrong)], kCrosser.contains(s.adjective) ? s.y : s.x);
    for (size_t k = 0; k < one.scored.size(); ++k) EXPECT_EQ(one.scored[k], k == 15 ? 1 : 0);
    EXPECT_EQ(std::ssize(one.tokens), language.sequence_length());
    different.insert(one.tokens);
  }
  EXPECT_EQ(std::ssize(different), language.count(split));
}

TEST(TwoNouns, ClosedFormIsWhatTheChapterDescribes) {
  for (uint64_t seed : {0, 1, 2}) {
    const auto language = make_synthetic("two-nouns", {.seed = seed});
    EXPECT_EQ(language->vocab_size(), 12 + 8 + 16);
    EXPECT_EQ(language->count(kHeldOut), 240);
    EXPECT_EQ(language->count(kTraining), 16 * 15 * 8 - 240);
    check_sentences(*language, kTraining);
    check_sentences(*language, kHeldOut);
    std::set<std::pair<std::string, std::string>> training, held_out;
    std::set<std::string> first, second;
    for (int64_t i = 0; i < language->count(kTraining); ++i) {
      const Sentence s = parse(*language, language->listed(kTraining, i));
      EXPECT_NE(s.x, s.y);
      training.insert({s.x, s.y});
      first.insert(s.x);
      second.insert(s.y);
    }
    for (int64_t i = 0; i < language->count(kHeldOut); ++i) {
      const Sentence s = parse(*language, language->listed(kHeldOut, i));
      held_out.insert({s.x, s.y});
      EXPECT_FALSE(training.contains({s.x, s.y}));
      EXPECT_TRUE(training.contains({s.y, s.x}));  // the reversed order teaches
    }
    EXPECT_EQ(held_out.size(), 30u);
    EXPECT_EQ(first.size(), 16u);  // either slot, one pool
    EXPECT_EQ(first, second);
    EXPECT_TRUE(first.contains("street"));
  }
}

TEST(TwoNouns, LeakyFormTellsTheSides) {
  for (int of_a_kind : {8, 16}) {
    const auto language = make_synthetic("two-nouns-leaky", {.symbols = of_a_kind});
    EXPECT_EQ(language->vocab_size(), 20 + 2 * of_a_kind);
    EXPECT_EQ(language->count(kHeldOut), of_a_kind * of_a_kind / 4 * 8);
    EXPECT_EQ(language->count(kTraining), of_a_kind * of_a_kind * 3 / 4 * 8);
    check_sentences(*language, kTraining);
    check_sentences(*language, kHeldOut);
    std::set<std::string> animals, places;
    std::set<std::pair<std::string, std::string>> training;
    for (int64_t i = 0; i < language->count(kTraining); ++i) {
      const Sentence s = parse(*language, language->listed(kTraining, i));
      animals.insert(s.x);
      places.insert(s.y);
      training.insert({s.x, s.y});
    }
    EXPECT_EQ(std::ssize(animals), of_a_kind);  // every noun is taught
    EXPECT_EQ(std::ssize(places), of_a_kind);
    for (const std::string& animal : animals) EXPECT_FALSE(places.contains(animal));
    for (int64_t i = 0; i < language->count(kHeldOut); ++i) {
      const Sentence s = parse(*language, language->listed(kHeldOut, i));
      EXPECT_FALSE(training.contains({s.x, s.y}));
      EXPECT_TRUE(animals.contains(s.x) && places.contains(s.y));
    }
  }
}

TEST(TwoNouns, PartitionFollowsTheSeedAndDrawsDoNot) {
  const auto a = make_synthetic("two-nouns"), b = make_synthetic("two-nouns", {.seed = 1});
  const auto all = [](const SyntheticLanguage& language) {
    std::set<std::vector<int32_t>> sentences;
    for (int64_t i = 0; i < language.count(kHeldOut); ++i) sentences.insert(language.listed(kHeldOut, i).tokens);
    return sentences;
  };
  EXPECT_NE(all(*a), all(*b));
  EXPECT_EQ(all(*a), all(*make_synthetic("two-nouns")));
  const std::set<std::vector<int32_t>> held_out = all(*a);
  std::set<std::vector<int32_t>> drawn;
  for (uint64_t i = 0; i < 5000; ++i) drawn.insert(a->sequence(3, kHeldOut, i).tokens);
  EXPECT_EQ(drawn, held_out);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(held_out.contains(a->sequence(3, kTraining, i).tokens));
}

TEST(TwoNouns, WrongOptionsAreRefused) {
  message_of([] { make_synthetic("two-nouns", {.symbols = 1}); });
  message_of([] { make_synthetic("two-nouns", {.symbols = 33}); });
  message_of([] { make_synthetic("two-nouns-leaky", {.symbols = 17}); });
  message_of([] { make_synthetic("two-nouns", {.symbols = -1}); });
  message_of([] { make_synthetic("two-nouns", {.held_out = 1.0}); });
  const auto language = make_synthetic("two-nouns", {.symbols = 2});  // one pair: no quarter of it
  EXPECT_EQ(language->count(kHeldOut), 0);
  EXPECT_EQ(language->count(kTraining), 16);
  expect_contains(message_of([&] { language->sequence(0, kHeldOut, 0); }), "held_out");
  message_of([&] { language->listed(kTraining, 16); });
  message_of([&] { language->listed(kTraining, -1); });
}

TEST(Repeat, SecondHalfIsTheFirst) {
  const auto language = make_synthetic("repeat", {.symbols = 10, .length = 6});
  EXPECT_EQ(language->vocab_size(), 10);
  EXPECT_EQ(language->sequence_length(), 12);
  std::map<int32_t, int> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const SyntheticSequence one = language->sequence(5, kTraining, i);
    ASSERT_EQ(one.tokens.size(), 12u);
    EXPECT_TRUE(std::equal(one.tokens.begin(), one.tokens.begin() + 6, one.tokens.begin() + 6));
    EXPECT_EQ(std::set<int32_t>(one.tokens.begin(), one.tokens.end()).size(), 6u);
    EXPECT_EQ(one.scored, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
    EXPECT_EQ(one.answer, -1);
    for (const int32_t token : one.tokens) seen[token] += 1;
  }
  // Every token 1,200 times of 12,000; five standard deviations of the first halves' 600 +- 15.5, counted twice, are
  // 155.
  EXPECT_EQ(seen.size(), 10u);
  for (const auto& [token, times] : seen) EXPECT_NEAR(times, 1200, 155) << token;
  EXPECT_EQ(make_synthetic("repeat", {.symbols = 6, .length = 6})->sequence_length(), 12);
  message_of([] { make_synthetic("repeat", {.symbols = 6, .length = 7}); });
  message_of([] { make_synthetic("repeat", {.length = 1}); });
}

TEST(Letters, AnswersAreRightAndScored) {
  for (const char* name : {"copy", "reverse", "sort"}) {
    const auto language = make_synthetic(name, {.symbols = 5, .length = 4});
    EXPECT_EQ(language->name(), name);
    EXPECT_EQ(language->vocab_size(), 6);
    EXPECT_EQ(language->vocabulary().back(), "|");
    for (uint64_t i = 0; i < 200; ++i) {
      const SyntheticSequence one = language->sequence(1, kTraining, i);
      ASSERT_EQ(one.tokens.size(), 9u);
      EXPECT_EQ(one.tokens[4], 5);
      EXPECT_EQ(one.scored, (std::vector<uint8_t>{0, 0, 0, 0, 0, 1, 1, 1, 1}));
      std::vector<int32_t> question(one.tokens.begin(), one.tokens.begin() + 4);
      const std::vector<int32_t> answer(one.tokens.begin() + 5, one.tokens.end());
      if (std::string(name) == "reverse") std::reverse(question.begin(), question.end());
      if (std::string(name) == "sort") std::sort(question.begin(), question.end());
      EXPECT_EQ(answer, question);
      for (const int32_t letter : answer) EXPECT_TRUE(letter >= 0 && letter < 5);
    }
    EXPECT_EQ(language->count(kTraining), 0);
    message_of([&] { language->listed(kTraining, 0); });
  }
  EXPECT_EQ(make_synthetic("copy", {.length = 1})->sequence(0, kTraining, 0).tokens.size(), 3u);
}

TEST(Letters, SidesNeverMeetEvenInASmallSpace) {
  for (const char* name : {"sort", "repeat"}) {
    const auto language = make_synthetic(name, {.seed = 2, .symbols = 4, .length = 3});
    std::set<std::vector<int32_t>> training, held_out;
    for (uint64_t i = 0; i < 2000; ++i) {
      training.insert(language->sequence(1, kTraining, i).tokens);
      held_out.insert(language->sequence(1, kHeldOut, i).tokens);
    }
    EXPECT_GE(held_out.size(), 1u);
    EXPECT_EQ(training.size() + held_out.size(), std::string(name) == "sort" ? 64u : 24u);
    for (const auto& one : held_out) EXPECT_FALSE(training.contains(one));
  }
  const auto language = make_synthetic("sort", {.symbols = 2, .length = 1, .held_out = 0});
  expect_contains(message_of([&] { language->sequence(0, kHeldOut, 0); }), "held_out");
}

TEST(Synthetic, SequencesAreNamedNotAdvanced) {
  for (const std::string& name : synthetic_names()) {
    EXPECT_TRUE(is_synthetic(name));
    const auto language = make_synthetic(name);
    EXPECT_EQ(language->name(), name);
    const auto late = language->sequence(1, kTraining, 77);
    for (uint64_t i = 0; i < 10; ++i) language->sequence(1, kHeldOut, i);
    EXPECT_EQ(make_synthetic(name)->sequence(1, kTraining, 77).tokens, late.tokens);
    int different = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      different += language->sequence(1, kTraining, i).tokens != language->sequence(2, kTraining, i).tokens;
    }
    EXPECT_GE(different, 15);
    EXPECT_EQ(late.scored.size(), late.tokens.size());
    EXPECT_EQ(std::ssize(late.tokens), language->sequence_length());
    EXPECT_EQ(late.scored[0], 0);
    for (int32_t i = 0; i < language->vocab_size(); ++i) EXPECT_EQ(language->id(language->vocabulary()[size_t(i)]), i);
  }
}

TEST(Synthetic, TextIsOneSequenceALine) {
  for (const std::string& name : synthetic_names()) {
    const auto language = make_synthetic(name);
    const std::string text = language->text(50);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50);
    EXPECT_EQ(text.back(), '\n');
    EXPECT_EQ(text.substr(0, text.find('\n')), language->words(language->sequence(0, kTraining, 0).tokens));
    EXPECT_NE(text, language->text(50, kHeldOut));
    EXPECT_NE(text, language->text(50, kTraining, 1));
    EXPECT_EQ(language->text(0), "");
    for (const std::string& word : words_of(text.substr(0, text.find('\n')))) language->id(word);
  }
}

TEST(Synthetic, UnknownNamesAndWords) {
  expect_contains(message_of([] { make_synthetic("two-noun"); }), "did you mean two-nouns?");
  expect_contains(message_of([] { make_synthetic("xyzzy"); }), "reverse or sort");
  EXPECT_FALSE(is_synthetic("tinyshakespeare"));
  const auto language = make_synthetic("sort");
  message_of([&] { language->id("street"); });
  const std::vector<int32_t> outside{27};
  message_of([&] { language->words(outside); });
  message_of([&] { language->text(-1); });
}

}  // namespace
}  // namespace bary
