// SPDX-License-Identifier: Apache-2.0
// What holds for every source of pairs, and the made-up ones: letters and numbers.
#include "bary/text/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "bary/base/error.h"
#include "bary/base/refusal_test.h"
#include "bary/text/number_words.h"
#include "bary/text/tokenizer.h"

namespace bary {
namespace {

constexpr PairSplit kTraining = PairSplit::training, kHeldOut = PairSplit::held_out;

const std::vector<std::string> kLetters{"copy", "reverse", "sort"};
const std::vector<std::string> kNumbers{"numbers-words", "words-numbers", "roman-arabic", "arabic-roman"};

std::unique_ptr<PairTask> made(const std::string& name) {
  PairOptions options;
  if (name == "restoration") {
    for (int i = 0; i < 40; ++i) options.text += fmt::format("Line {}: d\xc3\xa9j\xc3\xa0 vu, he said.\n", i);
  }
  return make_pair_task(name, options);
}

TEST(Pairs, UnknownNamesAreAnsweredWithTheNearest) {
  expect_contains(message_of([] { make_pair_task("revers"); }), "no task \"revers\"; did you mean reverse?");
  expect_contains(message_of([] { make_pair_task("number-words"); }), "did you mean numbers-words?");
  const std::string message = message_of([] { make_pair_task(""); });
  for (const std::string& name : pair_task_names()) expect_contains(message, name);
  EXPECT_TRUE(is_pair_task("roman-arabic"));
  EXPECT_FALSE(is_pair_task("two-nouns"));
}

TEST(Pairs, SharesThatAreNone) {
  for (const std::string& name : pair_task_names()) {
    for (const double share : {-0.1, 1.0, std::nan("")}) {
      const std::string message = message_of([&] { make_pair_task(name, {.held_out = share, .text = "a\nb\n"}); });
      expect_contains(message, name + ": val_fraction is ");
    }
  }
  expect_contains(message_of([] { make_pair_task("copy", {.held_out = 0.0001}); }), "copy: val_fraction is 0.0001");
  expect_contains(message_of([] { make_pair_task("roman-arabic", {.held_out = 1e-9}); }), "holds out none of 3999");
}

TEST(Pairs, NothingHeldOut) {
  for (const std::string name : {"copy", "arabic-roman", "restoration"}) {
    const auto task = make_pair_task(name, {.held_out = 0, .text = "One.\nTwo.\n"});
    EXPECT_EQ(task->count(kHeldOut), 0);
    EXPECT_FALSE(task->draw(1, kTraining, 0).source.empty());
    expect_contains(message_of([&] { task->draw(1, kHeldOut, 0); }), name + ": nothing is held out (val_fraction 0)");
  }
}

TEST(Pairs, DrawsAreAFunctionOfSeedSplitAndIndex) {
  for (const std::string& name : pair_task_names()) {
    if (name == "pairs") continue;
    const auto task = made(name), again = made(name);
    EXPECT_EQ(task->facts().sha256, again->facts().sha256);
    for (const PairSplit split : {kTraining, kHeldOut}) {
      const std::vector<TextPair> want = drawn_pairs(*task, 7, split, 100);
      std::vector<TextPair> got(100);
      const auto half = [&](size_t begin) {
        for (size_t i = begin + 50; i-- > begin;) got[i] = again->draw(7, split, i);
      };
      std::thread other(half, 0);
      half(50);
      other.join();
      EXPECT_EQ(got, want) << name;
      EXPECT_NE(drawn_pairs(*task, 8, split, 100), want) << name;
    }
    EXPECT_NE(drawn_pairs(*task, 7, kTraining, 20), drawn_pairs(*task, 7, kHeldOut, 20)) << name;
  }
}

TEST(Pairs, TheAlphabetCodesEveryPairAndTheLongestIsLongest) {
  for (const std::string& name : pair_task_names()) {
    if (name == "pairs") continue;
    const auto task = made(name);
    const PairFacts& facts = task->facts();
    EXPECT_EQ(facts.name, name);
    const Tokenizer tokenizer = Tokenizer::characters(task->alphabet(), {"<pad>", "<bos>", "<eos>"});
    int64_t longest_source = 0, longest_target = 0;
    const auto look = [&](const TextPair& pair) {
      longest_source = std::max(longest_source, tokenizer.count(pair.source));  // throws on a character it lacks
      longest_target = std::max(longest_target, tokenizer.count(pair.target));
    };
    for (const TextPair& pair : drawn_pairs(*task, 3, kTraining, 2000)) look(pair);
    for (const TextPair& pair : drawn_pairs(*task, 3, kHeldOut, 2000)) look(pair);
    if (task->is_list()) {
      for (const TextPair& pair : listed_pairs(*task, kTraining)) look(pair);
      for (const TextPair& pair : listed_pairs(*task, kHeldOut)) look(pair);
    }
    EXPECT_EQ(longest_source, facts.longest_source) << name;
    EXPECT_EQ(longest_target, facts.longest_target) << name;
  }
  EXPECT_EQ(made("copy")->alphabet(), "abcdefgh");
  EXPECT_EQ(made("roman-arabic")->alphabet(), "0123456789CDILMVX");
  EXPECT_EQ(made("numbers-words")->alphabet(), " -0123456789adefghilnorstuvwxyz");
}

TEST(Pairs, ListsHaveEnds) {
  const auto task = made("roman-arabic");
  EXPECT_EQ(task->listed(kTraining, 0).source, made("arabic-roman")->listed(kTraining, 0).target);
  expect_contains(message_of([&] { task->listed(kTraining, -1); }), "roman-arabic: there is no pair -1; choose 0 to ");
  message_of([&] { task->listed(kHeldOut, task->count(kHeldOut)); });
  EXPECT_FALSE(made("copy")->is_list());
  EXPECT_EQ(made("copy")->count(kTraining), 0);
  expect_contains(message_of([] { made("copy")->listed(kTraining, 0); }), "too many pairs to list");
  expect_contains(message_of([] { listed_pairs(*made("copy"), kTraining); }), "too many pairs to list");
  expect_contains(message_of([&] { drawn_pairs(*task, 0, kTraining, -1); }), "-1 pairs were asked for");
}

TEST(LetterPairs, TargetsAreWhatTheNameSays) {
  for (const std::string& name : kLetters) {
    const auto task = made(name);
    for (const PairSplit split : {kTraining, kHeldOut}) {
      for (const TextPair& pair : drawn_pairs(*task, 1, split, 500)) {
        std::string want = pair.source;
        if (name == "reverse") want.assign(pair.source.rbegin(), pair.source.rend());
        if (name == "sort") std::sort(want.begin(), want.end());
        ASSERT_EQ(pair.target, want) << name;
      }
    }
  }
}

TEST(LetterPairs, LengthsAreUniformBetweenTheBounds) {
  const int draws = 18'000;
  for (const PairSplit split : {kTraining, kHeldOut}) {
    std::map<size_t, int> lengths;
    for (const TextPair& pair : drawn_pairs(*made("copy"), 1, split, draws)) ++lengths[pair.source.size()];
    EXPECT_EQ(lengths.begin()->first, 3u);
    EXPECT_EQ(lengths.rbegin()->first, 20u);
    // 1,000 of each, standard deviation 31; short ones follow the side that their few sources fell on.
    for (const auto& [length, times] : lengths) EXPECT_NEAR(times, draws / 18, length < 6 ? 300 : 160) << length;
  }
  const auto one = make_pair_task("sort", {.held_out = 0, .symbols = 2, .min_length = 1, .max_length = 1});
  std::set<std::string> seen;
  for (const TextPair& pair : drawn_pairs(*one, 0, kTraining, 50)) seen.insert(pair.source);
  EXPECT_EQ(seen, (std::set<std::string>{"a", "b"}));
}

TEST(LetterPairs, SplitsNeverShareASourceWhateverIsAsked) {
  std::set<std::string> training, held_out;
  uint64_t seed = 0;
  for (const std::string& name : kLetters) {
    for (const PairOptions& options : {PairOptions{}, PairOptions{.symbols = 3, .min_length = 1, .max_length = 6}}) {
      const auto task = make_pair_task(name, options);
      for (int i = 0; i < 3; ++i, ++seed) {
        for (const TextPair& pair : drawn_pairs(*task, seed, kTraining, 3000)) training.insert(pair.source);
        for (const TextPair& pair : drawn_pairs(*task, seed, kHeldOut, 3000)) held_out.insert(pair.source);
      }
    }
  }
  EXPECT_GT(training.size(), 10'000u);
  EXPECT_GT(held_out.size(), 5'000u);
  for (const std::string& source : held_out) ASSERT_EQ(training.count(source), 0u) << source;
}

TEST(LetterPairs, AnotherSeedHoldsOutOtherSources) {
  std::set<std::string> training;
  for (const TextPair& pair :
       drawn_pairs(*make_pair_task("copy", {.seed = 1, .symbols = 3, .max_length = 4}), 0, kTraining, 3000)) {
    training.insert(pair.source);
  }
  const auto other = make_pair_task("copy", {.seed = 2, .symbols = 3, .max_length = 4});
  int shared = 0;
  for (const TextPair& pair : drawn_pairs(*other, 0, kHeldOut, 100)) shared += training.count(pair.source) > 0;
  EXPECT_GT(shared, 50);
}

TEST(LetterPairs, BadOptions) {
  expect_contains(message_of([] { make_pair_task("copy", {.symbols = 27}); }), "(symbols) is 27, it must be 2 to 26");
  expect_contains(message_of([] { make_pair_task("copy", {.symbols = 1}); }), "(symbols) is 1");
  expect_contains(message_of([] { make_pair_task("sort", {.min_length = 0}); }), "sort: min_length is 0");
  expect_contains(message_of([] { make_pair_task("reverse", {.min_length = 9, .max_length = 8}); }),
                  "max_length is 8, it must be 9 to 100000");
  message_of([] { make_pair_task("copy", {.max_length = 100'001}); });
  // Two sources, of which none is held out: said at once, not at the first evaluation.
  expect_contains(
      message_of([] { make_pair_task("copy", {.held_out = 0.001, .symbols = 2, .min_length = 1, .max_length = 1}); }),
      "choose more symbols");
}

TEST(NumberPairs, EveryNumberIsOnOneSide) {
  for (const std::string& name : kNumbers) {
    const auto task = made(name);
    const bool roman = name.find("roman") != std::string::npos;
    const int64_t all = roman ? 3999 : 1'000'000;
    EXPECT_EQ(task->count(kTraining) + task->count(kHeldOut), all);
    // A tenth, give or take five standard deviations of a binomial.
    EXPECT_NEAR(double(task->count(kHeldOut)), 0.1 * double(all), 5 * 0.3 * std::sqrt(double(all))) << name;
    if (!roman) continue;
    std::set<std::string> sources;
    for (const PairSplit split : {kTraining, kHeldOut}) {
      for (const TextPair& pair : listed_pairs(*task, split)) sources.insert(pair.source);
    }
    EXPECT_EQ(std::ssize(sources), all);
  }
}

TEST(NumberPairs, BothDirectionsShareTheirSides) {
  for (const auto& [one, other] : {std::pair{"numbers-words", "words-numbers"}, {"roman-arabic", "arabic-roman"}}) {
    const auto there = make_pair_task(one, {.seed = 5}), back = make_pair_task(other, {.seed = 5});
    ASSERT_EQ(there->count(kHeldOut), back->count(kHeldOut));
    for (int64_t i = 0; i < there->count(kHeldOut); i += 13) {
      const TextPair pair = there->listed(kHeldOut, i), turned = back->listed(kHeldOut, i);
      ASSERT_EQ(pair, (TextPair{turned.target, turned.source}));
    }
  }
}

TEST(NumberPairs, TextsAreTheNumbers) {
  const auto words = made("numbers-words"), roman = made("arabic-roman");
  for (const PairSplit split : {kTraining, kHeldOut}) {
    for (const TextPair& pair : drawn_pairs(*words, 1, split, 300)) {
      EXPECT_EQ(pair.target, number_in_words(std::stoll(pair.source)));
    }
    for (const TextPair& pair : drawn_pairs(*roman, 1, split, 300)) {
      EXPECT_EQ(pair.target, roman_numeral(std::stoll(pair.source)));
    }
  }
}

TEST(NumberPairs, TheVocabularyIsForTraining) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto task = make_pair_task("numbers-words", {.seed = seed, .held_out = 0.5});
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(task->listed(kTraining, i).source, fmt::format("{}", i));
    EXPECT_LT(std::stoll(task->listed(kTraining, 60).source), 160);
  }
}

TEST(NumberPairs, TrainingMeetsShortNumbersHeldOutDrawsAreUniform) {
  const auto task = made("numbers-words");
  std::set<std::string> held_out;
  for (const TextPair& pair : listed_pairs(*task, kHeldOut)) held_out.insert(pair.source);
  std::map<size_t, int> training, tested;
  for (const TextPair& pair : drawn_pairs(*task, 2, kTraining, 12'000)) {
    ++training[pair.source.size()];
    ASSERT_EQ(held_out.count(pair.source), 0u);
  }
  for (const TextPair& pair : drawn_pairs(*task, 2, kHeldOut, 12'000)) {
    ++tested[pair.source.size()];
    ASSERT_EQ(held_out.count(pair.source), 1u);
  }
  for (size_t digits = 1; digits <= 5; ++digits) EXPECT_GT(training[digits], 800) << digits;  // of 1,000 and more
  EXPECT_NEAR(training[6], 6000 * 0.9 + 1000, 300);
  EXPECT_NEAR(tested[6], 12'000 * 0.9, 300);
  EXPECT_LT(tested[1] + tested[2] + tested[3], 60);
}

}  // namespace
}  // namespace bary
