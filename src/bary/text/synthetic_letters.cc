// SPDX-License-Identifier: Apache-2.0
// "c a b | c a b", "c a b | b a c", "c a b | a b c": L random letters (they may repeat), a separator, and the letters
// copied, reversed or sorted. Scored: everything after the separator.
#include <algorithm>

#include "bary/base/error.h"
#include "bary/text/synthetic_languages.h"

namespace bary {
namespace {

std::vector<std::string> letters_and_separator(int letters) {
  std::vector<std::string> words;
  for (int i = 0; i < letters; ++i) words.emplace_back(1, static_cast<char>('a' + i));
  words.emplace_back("|");
  return words;
}

const char* name_of(LetterTask task) {
  switch (task) {
    case LetterTask::copy:
      return "copy";
    case LetterTask::reverse:
      return "reverse";
    default:
      return "sort";
  }
}

class Letters : public SyntheticLanguage {
 public:
  Letters(LetterTask task, int letters, int length, const SyntheticOptions& options)
      : SyntheticLanguage(name_of(task), letters_and_separator(letters), 2 * int64_t{length} + 1),
        task_(task),
        length_(length),
        options_(options) {}

  SyntheticSequence sequence(uint64_t seed, SyntheticSplit split, uint64_t index) const override {
    const int32_t separator = vocab_size() - 1;
    SyntheticSequence made;
    made.tokens = draw_on_side(options_, split, draw_stream(seed, split, index), [&](RandomStream& stream) {
      std::vector<int32_t> letters(static_cast<size_t>(length_));
      for (int32_t& letter : letters) letter = static_cast<int32_t>(stream.below(static_cast<uint64_t>(separator)));
      return letters;
    });
    std::vector<int32_t> answer = made.tokens;
    if (task_ == LetterTask::reverse) std::reverse(answer.begin(), answer.end());
    if (task_ == LetterTask::sort) std::sort(answer.begin(), answer.end());
    made.tokens.push_back(separator);
    made.scored.assign(made.tokens.size(), 0);
    made.tokens.insert(made.tokens.end(), answer.begin(), answer.end());
    made.scored.resize(made.tokens.size(), 1);
    return made;
  }

 private:
  LetterTask task_;
  int length_;
  SyntheticOptions options_;
};

}  // namespace

std::unique_ptr<SyntheticLanguage> make_letter_task(LetterTask task, const SyntheticOptions& options) {
  const int letters = or_default(options.symbols, 26);
  const int length = or_default(options.length, 8);
  check_held_out(name_of(task), options.held_out);
  check_range(name_of(task), "the number of letters (symbols)", letters, 2, 26);
  check_range(name_of(task), "length", length, 1, 100'000);
  return std::make_unique<Letters>(task, letters, length, options);
}

}  // namespace bary
