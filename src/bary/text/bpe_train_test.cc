// SPDX-License-Identifier: Apache-2.0
#include "bary/text/bpe_train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/random.h"
#include "bary/text/byte_map.h"

namespace bary {
namespace {

using Merges = std::vector<std::pair<int32_t, int32_t>>;

Merges merges_of(const BpeTraining& training) {
  Merges merges;
  for (const BpeStep& step : training.steps) merges.emplace_back(step.left, step.right);
  return merges;
}

BpeTraining train(std::string_view text, const BpeOptions& options) {
  return train_bpe(std::vector<std::string_view>{text}, options);
}

// The definition: count all pairs, join the best, begin again.
class ByDefinition {
 public:
  explicit ByDefinition(std::string_view text, const BpeOptions& options) : options_(options) {
    PieceScanner scanner(options.pattern, text);
    for (std::string_view piece; scanner.next(piece);) {
      pieces_.emplace_back();
      for (char c : piece) pieces_.back().push_back(static_cast<uint8_t>(c));
    }
    for (int b = 0; b < 256; ++b) bytes_.emplace_back(1, static_cast<char>(b));
  }

  std::vector<BpeStep> run() {
    std::vector<BpeStep> steps;
    while (bytes_.size() < static_cast<size_t>(options_.vocab_size)) {
      BpeStep step = best();
      if (step.count < options_.min_frequency) break;
      step.tokens = join(step);
      steps.push_back(step);
    }
    return steps;
  }

 private:
  size_t rank(int32_t id) const {
    return id >= 256 ? static_cast<size_t>(id)
                     : printable_of_byte(static_cast<uint8_t>(id)) % 256 +
                           (printable_of_byte(static_cast<uint8_t>(id)) >= 256 ? 188 : 0);
  }
  bool wins(std::pair<int32_t, int32_t> a, std::pair<int32_t, int32_t> b) const {  // a tie, seen in the order b, a
    const auto text = [&](int32_t id) { return bytes_[static_cast<size_t>(id)]; };
    if (options_.ties == TieRule::hf)
      return std::pair(rank(a.first), rank(a.second)) < std::pair(rank(b.first), rank(b.second));
    if (options_.ties == TieRule::bytes)
      return std::pair(text(a.first), text(a.second)) < std::pair(text(b.first), text(b.second));
    return false;
  }

  BpeStep best() const {
    std::vector<std::pair<int32_t, int32_t>> order;  // of first occurrence
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& piece : pieces_)
      for (size_t i = 1; i < piece.size(); ++i)
        if (counts[{piece[i - 1], piece[i]}]++ == 0) order.emplace_back(piece[i - 1], piece[i]);
    BpeStep step;
    for (const auto& pair : order) {
      const int64_t size = static_cast<int64_t>(bytes_[static_cast<size_t>(pair.first)].size() +
                                                bytes_[static_cast<size_t>(pair.second)].size());
      if (options_.max_token_length > 0 && size > options_.max_token_length) continue;
      const int64_t count = counts[pair];
      step.ties = count == step.count ? step.ties + 1 : count > step.count ? 1 : step.ties;
      if (count > step.count || (count == step.count && wins(pair, {step.left, step.right})))
        step.left = pair.first, step.right = pair.second, step.count = count;
    }
    return step;
  }

  int64_t join(const BpeStep& step) {
    const auto id = static_cast<int32_t>(bytes_.size());
    bytes_.push_back(bytes_[static_cast<size_t>(step.left)] + bytes_[static_cast<size_t>(step.right)]);
    EXPECT_EQ(std::count(bytes_.begin(), bytes_.end(), bytes_.back()), 1);  // no token is learned twice
    int64_t tokens = 0;
    for (auto& piece : pieces_) {
      std::vector<int32_t> joined;
      for (size_t i = 0; i < piece.size(); ++i) {
        const bool here = piece[i] == step.left && i + 1 < piece.size() && piece[i + 1] == step.right;
        joined.push_back(here ? id : piece[i]);
        i += here;
      }
      piece = joined;
      tokens += static_cast<int64_t>(piece.size());
    }
    return tokens;
  }

  BpeOptions options_;
  std::vector<std::vector<int32_t>> pieces_;
  std::vector<std::string> bytes_;
};

TEST(BpeTrain, WikipediaExample) {
  const BpeTraining training = train("aaabdaaabac", {.vocab_size = 259});
  EXPECT_EQ(merges_of(training), (Merges{{'a', 'a'}, {256, 'a'}, {257, 'b'}}));
  EXPECT_EQ(training.steps[0].count, 4);  // "aaa" twice, two places each
  EXPECT_EQ(training.steps[0].tokens, 9);
  EXPECT_EQ(training.tokens, 5);
  EXPECT_EQ(training.note, "");
}

TEST(BpeTrain, AgreesWithTheDefinitionOnRandomTexts) {
  for (uint64_t trial = 0; trial < 600; ++trial) {
    RandomStream random(trial, Purpose::test);
    BpeOptions options;
    options.vocab_size = 256 + static_cast<int>(random.below(60));
    options.ties = static_cast<TieRule>(trial % 3);
    options.pattern = trial % 2 == 0 ? Pattern::gpt2 : Pattern::none;
    options.min_frequency = trial % 5 == 0 ? 2 : 1;
    options.max_token_length = trial % 7 == 0 ? static_cast<int64_t>(random.below(6)) : 0;
    const std::string letters = trial % 4 == 0 ? "ab" : trial % 4 == 1 ? "aab \n" : "abcde f\x80!";
    std::string text;
    for (uint64_t i = random.below(300); i > 0; --i) text += letters[random.below(letters.size())];

    const BpeTraining training = train(text, options);
    const std::vector<BpeStep> expected = ByDefinition(text, options).run();
    ASSERT_EQ(training.steps.size(), expected.size()) << trial;
    for (size_t i = 0; i < expected.size(); ++i) {
      const BpeStep &got = training.steps[i], &want = expected[i];
      ASSERT_EQ(std::tie(got.left, got.right, got.count, got.ties, got.tokens),
                std::tie(want.left, want.right, want.count, want.ties, want.tokens))
          << "trial " << trial << " step " << i;
    }
    ASSERT_EQ(training.note.empty(), static_cast<int>(expected.size()) == options.vocab_size - 256);
  }
}

TEST(BpeTrain, TieRules) {
  // Every pair occurs once.
  EXPECT_EQ(merges_of(train("xy ab\x01"
                            "z",
                            {.vocab_size = 257, .pattern = Pattern::none})),
            (Merges{{'x', 'y'}}));
  EXPECT_EQ(merges_of(train("xy ab\x01"
                            "z",
                            {.vocab_size = 257, .pattern = Pattern::none, .ties = TieRule::hf})),
            (Merges{{'a', 'b'}}));  // the blank and \x01 come after the letters there
  EXPECT_EQ(merges_of(train("xy ab\x01"
                            "z",
                            {.vocab_size = 257, .pattern = Pattern::none, .ties = TieRule::bytes})),
            (Merges{{0x01, 'z'}}));
}

TEST(BpeTrain, Row4TextWithoutPairsStopsWithANote) {
  const BpeTraining training = train("", {.vocab_size = 260});
  EXPECT_TRUE(training.steps.empty());
  EXPECT_EQ(training.note, "learned 0 of 4 merges: no pair of neighbouring tokens is left");
  EXPECT_EQ(train("   ", {.vocab_size = 260}).steps.size(), 2u);  // "  ", then "  " + " "
  EXPECT_EQ(train("a b", {.vocab_size = 260}).steps.size(), 1u);  // " b" alone has two bytes
}

TEST(BpeTrain, Row3MaxTokenLengthIsInclusive) {
  BpeOptions options{.vocab_size = 300, .max_token_length = 1};
  EXPECT_TRUE(train("hello world", options).steps.empty());
  options.max_token_length = 2;
  const BpeTraining training = train("hello world hello", options);
  EXPECT_FALSE(training.steps.empty());
  for (const BpeStep& step : training.steps) EXPECT_TRUE(step.left < 256 && step.right < 256);
  EXPECT_NE(training.note.find("within 2 bytes"), std::string::npos);
}

TEST(BpeTrain, Row1CountsPastTwoToTheThirtyOne) {
  const int64_t many = int64_t{5} << 32;
  const std::vector<CountedPiece> pieces = {{"the", many}, {"then", many}, {"ab", 2 * many - 1}};
  const BpeTraining training = train_bpe_counts(pieces, {.vocab_size = 259});
  EXPECT_EQ(merges_of(training), (Merges{{'t', 'h'}, {256, 'e'}, {'a', 'b'}}));
  EXPECT_EQ(training.steps[0].count, 2 * many);
  EXPECT_EQ(training.bytes, 11 * many - 2);
  EXPECT_EQ(training.tokens, 3 * many + 2 * many - 1);  // the; the n; ab
}

TEST(BpeTrain, PiecesDoNotSpanDocumentsNorSpecialTokens) {
  EXPECT_TRUE(train_bpe(std::vector<std::string_view>{"a", "b", "a", "b"}, {.vocab_size = 260}).steps.empty());
  BpeOptions options{.vocab_size = 300, .specials = {"<|x|>", "<|x|>y"}};
  const BpeTraining training = train("a<|x|>b<|x|>yc", options);
  EXPECT_TRUE(training.steps.empty());
  EXPECT_EQ(training.bytes, 3);
  EXPECT_EQ(training.note, "learned 0 of 42 merges: no pair of neighbouring tokens is left");
}

TEST(BpeTrain, RefusesSizesThatCanNotBe) {
  const auto message = [](const BpeOptions& options) {
    try {
      train("abc", options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(
      message({.vocab_size = 255}),
      "train: vocab_size is 255 but 256 bytes and 0 special tokens need at least 256; choose a larger vocabulary");
  EXPECT_NE(message({.vocab_size = 256, .specials = {"<s>"}}).find("at least 257"), std::string::npos);
  EXPECT_NE(message({.min_frequency = 0}).find("min_frequency is 0"), std::string::npos);
  EXPECT_NE(message({.max_token_length = -1}).find("max_token_length is -1"), std::string::npos);
  EXPECT_NE(message({.specials = {""}}).find("empty text"), std::string::npos);
  EXPECT_EQ(message({.vocab_size = 256}), "accepted");
  EXPECT_THROW(train_bpe_counts(std::vector<CountedPiece>{{"a", -1}}, {}), Error);
}

TEST(BpeTrain, ReportsProgressAndLetsItStop) {
  std::vector<int64_t> done;
  BpeOptions options{.vocab_size = 258};
  options.progress = [&](int64_t n, int64_t wanted) { done.push_back(n * 10 + wanted); };
  train("abcabc", options);
  EXPECT_EQ(done, (std::vector<int64_t>{12, 22}));
  options.progress = [](int64_t, int64_t) { fail("enough"); };
  EXPECT_THROW(train("abcabc", options), Error);
}

// One piece of a million equal bytes halves at each step; a quadratic trainer would not come back from this.
TEST(BpeTrain, Row10OneHugePiece) {
  const std::string text(1 << 20, 'a');
  const BpeTraining training = train(text, {.vocab_size = 300});
  ASSERT_EQ(training.steps.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(training.steps[i].count, (int64_t{1} << (20 - i)) - 1);
    EXPECT_EQ(training.steps[i].tokens, int64_t{1} << (19 - i));
  }
  EXPECT_FALSE(training.note.empty());
}

TEST(BpeTrain, HugeRandomPieceIsNotQuadratic) {
  RandomStream random(1, Purpose::test);
  std::string dna;
  for (int i = 0; i < 4000000; ++i) dna += "ACGT"[random.below(4)];
  const BpeTraining training = train(dna, {.vocab_size = 512});
  EXPECT_EQ(training.steps.size(), 256u);
  EXPECT_LT(training.tokens, 1200000);
}

}  // namespace
}  // namespace bary
