// SPDX-License-Identifier: Apache-2.0
// Numbers spelt out in English or in Roman numerals, and back. The side is the number's, the same in both directions.
// 0 to 19 are for training always: that 0 is "zero" follows from no other pair, it is vocabulary and not the rule.
//
// Held-out draws are uniform over the held-out numbers. So is every other training draw on average; the rest choose how
// many digits first, because 9 in 10 numbers below a million have six and a model should meet short ones too.
#include <algorithm>
#include <array>

#include "bary/base/error.h"
#include "bary/base/sha256.h"
#include "bary/text/number_words.h"
#include "bary/text/pair_tasks.h"

namespace bary {
namespace {

struct Kind {
  const char* name;
  int32_t lowest, highest;
  int32_t rule_from;  // numbers below are vocabulary
  std::string (*spelt)(int64_t);
  bool from_digits;
};

constexpr Kind kKinds[] = {
    {"numbers-words", 0, kHighestInWords, 20, number_in_words, true},
    {"words-numbers", 0, kHighestInWords, 20, number_in_words, false},
    {"roman-arabic", 1, kHighestRoman, 1, roman_numeral, false},
    {"arabic-roman", 1, kHighestRoman, 1, roman_numeral, true},
};

TextPair pair_of(const Kind& kind, int64_t number) {
  TextPair pair{fmt::format("{}", number), kind.spelt(number)};
  if (!kind.from_digits) std::swap(pair.source, pair.target);
  return pair;
}

// Every character and the longest texts occur among these: all Roman numerals; of the numbers in words 0, 1001, 2002
// ... 999,999, since the two halves of a number are spelt alike and independently.
PairFacts facts_of(const Kind& kind, const PairOptions& options) {
  PairCensus census;
  for (int32_t number = kind.lowest; number <= kind.highest; number += kind.highest == kHighestRoman ? 1 : 1001) {
    const TextPair pair = pair_of(kind, number);
    census.add(pair.source, pair.target);
  }
  return census.facts(kind.name, options.held_out,
                      sha256_hex(fmt::format("{} {} {}", kind.name, options.seed, options.held_out)));
}

struct Numbers {
  std::vector<int32_t> training, held_out;  // rising
};

Numbers split_numbers(const Kind& kind, const PairOptions& options) {
  const SyntheticOptions partition = partition_of(options);
  Numbers numbers;
  std::vector<int32_t> contents(1);
  for (int32_t number = kind.lowest; number <= kind.highest; ++number) {
    contents[0] = number;
    const bool held_out = number >= kind.rule_from && is_held_out(partition, contents);
    (held_out ? numbers.held_out : numbers.training).push_back(number);
  }
  return numbers;
}

class NumberPairs : public ListedPairs {
 public:
  NumberPairs(const Kind& kind, PairFacts facts, Numbers numbers)
      : ListedPairs(std::move(facts), std::ssize(numbers.training), std::ssize(numbers.held_out)),
        kind_(kind),
        numbers_(std::move(numbers)) {
    for (int64_t from = 1; from <= kind.highest; from *= 10) {
      const auto& all = numbers_.training;
      const auto first = std::lower_bound(all.begin(), all.end(), from == 1 ? 0 : from);
      const auto last = std::lower_bound(first, all.end(), from * 10);
      if (first != last) by_digits_.push_back({first - all.begin(), last - all.begin()});
    }
  }

  TextPair draw(uint64_t seed, PairSplit split, uint64_t index) const override {
    if (split == PairSplit::held_out) return ListedPairs::draw(seed, split, index);
    RandomStream stream = draw_stream(seed, split, index);
    Range range{0, count(split)};
    if (stream.below(2) == 0) range = by_digits_[stream.below(by_digits_.size())];
    return pair_at(split,
                   range.first + static_cast<int64_t>(stream.below(static_cast<uint64_t>(range.last - range.first))));
  }

 protected:
  TextPair pair_at(PairSplit split, int64_t index) const override {
    const auto& numbers = split == PairSplit::training ? numbers_.training : numbers_.held_out;
    return pair_of(kind_, numbers[static_cast<size_t>(index)]);
  }

 private:
  struct Range {
    int64_t first, last;  // in numbers_.training
  };
  const Kind& kind_;
  Numbers numbers_;
  std::vector<Range> by_digits_;  // none is empty
};

}  // namespace

std::unique_ptr<PairTask> make_number_pairs(NumberTask task, const PairOptions& options) {
  const Kind& kind = kKinds[static_cast<size_t>(task)];
  return std::make_unique<NumberPairs>(kind, facts_of(kind, options), split_numbers(kind, options));
}

}  // namespace bary
