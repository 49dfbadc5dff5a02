// SPDX-License-Identifier: Apache-2.0
// copy "cab" -> "cab", reverse "cab" -> "bac", sort "cab" -> "abc": letters drawn one by one (they may repeat), the
// length first. A source's side does not depend on the exercise or on the lengths asked for: what one model learned
// from is never what another is tested on.
#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/sha256.h"
#include "bary/text/pair_tasks.h"

namespace bary {
namespace {

constexpr int kLongest = 100'000;
// Asking again until a draw is on the right side takes 1/share draws on average.
constexpr double kSmallestShare = 0.001;

const char* name_of(LetterTask task) {
  return task == LetterTask::copy ? "copy" : task == LetterTask::reverse ? "reverse" : "sort";
}

PairFacts facts_of(LetterTask task, const PairOptions& options) {
  std::string letters;
  for (int i = 0; i < options.symbols; ++i) letters += static_cast<char>('a' + i);
  const std::string identity = fmt::format("{} {} {} {} {} {}", name_of(task), options.seed, options.held_out,
                                           options.symbols, options.min_length, options.max_length);
  return {name_of(task), options.held_out, letters, options.max_length, options.max_length, sha256_hex(identity)};
}

class LetterPairs : public PairTask {
 public:
  LetterPairs(LetterTask task, const PairOptions& options)
      : PairTask(facts_of(task, options)),
        task_(task),
        symbols_(static_cast<uint64_t>(options.symbols)),
        shortest_(static_cast<uint64_t>(options.min_length)),
        lengths_(static_cast<uint64_t>(options.max_length - options.min_length) + 1),
        partition_(partition_of(options)) {}

  TextPair draw(uint64_t seed, PairSplit split, uint64_t index) const override {
    const bool held_out = split == PairSplit::held_out;
    BARY_CHECK(!held_out || partition_.held_out > 0,
               "{}: nothing is held out (val_fraction 0); choose a share such as 0.1", name());
    const std::vector<int32_t> letters =
        draw_on_side(partition_, held_out ? SyntheticSplit::held_out : SyntheticSplit::training,
                     draw_stream(seed, split, index), [this](RandomStream& stream) {
                       std::vector<int32_t> drawn(shortest_ + stream.below(lengths_));
                       for (int32_t& letter : drawn) letter = static_cast<int32_t>(stream.below(symbols_));
                       return drawn;
                     });
    TextPair pair;
    for (const int32_t letter : letters) pair.source += static_cast<char>('a' + letter);
    pair.target = pair.source;
    if (task_ == LetterTask::reverse) std::reverse(pair.target.begin(), pair.target.end());
    if (task_ == LetterTask::sort) std::sort(pair.target.begin(), pair.target.end());
    return pair;
  }

 private:
  LetterTask task_;
  uint64_t symbols_, shortest_, lengths_;
  SyntheticOptions partition_;
};

}  // namespace

std::unique_ptr<PairTask> make_letter_pairs(LetterTask task, const PairOptions& options) {
  const char* const name = name_of(task);
  check_range(name, "the number of letters (symbols)", options.symbols, 2, 26);
  check_range(name, "min_length", options.min_length, 1, kLongest);
  check_range(name, "max_length", options.max_length, options.min_length, kLongest);
  BARY_CHECK(options.held_out == 0 || (options.held_out >= kSmallestShare && options.held_out <= 1 - kSmallestShare),
             "{}: val_fraction is {}, it must be 0 or {} to {}; 0.1 holds out a tenth", name, options.held_out,
             kSmallestShare, 1 - kSmallestShare);
  auto pairs = std::make_unique<LetterPairs>(task, options);
  // So few and so short sources that one side has none are refused here, not in the middle of a run.
  pairs->draw(0, PairSplit::training, 0);
  if (options.held_out > 0) pairs->draw(0, PairSplit::held_out, 0);
  return pairs;
}

}  // namespace bary
