// SPDX-License-Identifier: Apache-2.0
// Inside text/: the makers behind make_pair_task, one file a family, and what they share.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/pairs.h"
#include "bary/text/synthetic_languages.h"

namespace bary {

std::unique_ptr<PairTask> make_letter_pairs(LetterTask task, const PairOptions& options);
enum class NumberTask : uint8_t { numbers_words, words_numbers, roman_arabic, arabic_roman };
std::unique_ptr<PairTask> make_number_pairs(NumberTask task, const PairOptions& options);
std::unique_ptr<PairTask> make_restoration_pairs(const PairOptions& options);
std::unique_ptr<PairTask> make_file_pairs(const PairOptions& options);

// Pairs split by contents share the languages' partition, streams of draws too.
SyntheticOptions partition_of(const PairOptions& options);
RandomStream draw_stream(uint64_t seed, PairSplit split, uint64_t index);

// Which characters occur, and how many at most in one text.
class PairCensus {
 public:
  void add(std::string_view source, std::string_view target);  // UTF-8
  PairFacts facts(std::string name, double held_out, std::string sha256) const;

 private:
  int64_t count(std::string_view text);

  std::vector<bool> seen_ = std::vector<bool>(0x110000);
  int64_t longest_source_ = 0, longest_target_ = 0;
};

// Pairs that can be listed: a split has the pairs 0 .. count-1, drawn uniformly.
class ListedPairs : public PairTask {
 public:
  TextPair draw(uint64_t seed, PairSplit split, uint64_t index) const override;
  bool is_list() const final { return true; }
  int64_t count(PairSplit split) const final { return split == PairSplit::training ? training_ : held_out_; }
  TextPair listed(PairSplit split, int64_t index) const final;

 protected:
  // Refused: nothing to learn from; nothing held out though a share is asked for.
  ListedPairs(PairFacts facts, int64_t training, int64_t held_out);
  virtual TextPair pair_at(PairSplit split, int64_t index) const = 0;
  void check_not_empty(PairSplit split) const;

 private:
  int64_t training_, held_out_;
};

// The lines of a text as (number from 1, offset, size in bytes) without LF or CRLF; what follows the last LF is a line
// if it is not empty. A byte order mark belongs to no line.
template <class Body>
void for_each_line(std::string_view text, const Body& body) {
  size_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t size = end > begin && text[end - 1] == '\r' ? end - 1 - begin : end - begin;
    body(number, begin, size);
    begin = end + 1;
  }
}

// Limits, checked before anything is allocated in proportion to what a file claims to be.
inline constexpr int64_t kMostPairBytes = int64_t{1} << 31, kMostPairs = 100'000'000, kMostTextBytes = 1 << 20;
// Refused: a text of more bytes or lines. `what` stands in front of the message.
void check_size_of_text(std::string_view what, std::string_view text);
// Refused: a line that is too long or not UTF-8.
void check_line(std::string_view what, int64_t number, std::string_view line);

}  // namespace bary
