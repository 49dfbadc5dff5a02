// SPDX-License-Identifier: Apache-2.0
#include "bary/text/pairs.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"
#include "bary/text/pair_tasks.h"
#include "bary/text/utf8.h"

namespace bary {

int64_t PairTask::count(PairSplit) const { return 0; }

TextPair PairTask::listed(PairSplit, int64_t) const {
  fail("{}: there are too many pairs to list; draw them with draw(seed, split, index)", name());
}

const std::vector<std::string>& pair_task_names() {
  static const std::vector<std::string> names{"copy",          "reverse",       "sort",
                                              "numbers-words", "words-numbers", "roman-arabic",
                                              "arabic-roman",  "restoration",   "pairs"};
  return names;
}

bool is_pair_task(std::string_view name) {
  return std::find(pair_task_names().begin(), pair_task_names().end(), name) != pair_task_names().end();
}

std::unique_ptr<PairTask> make_pair_task(std::string_view name, const PairOptions& options) {
  BARY_CHECK(!is_pair_task(name) || (options.held_out >= 0 && options.held_out < 1),
             "{}: val_fraction is {}, it must be at least 0 and below 1; 0.1 holds out a tenth", name,
             options.held_out);
  if (name == "copy") return make_letter_pairs(LetterTask::copy, options);
  if (name == "reverse") return make_letter_pairs(LetterTask::reverse, options);
  if (name == "sort") return make_letter_pairs(LetterTask::sort, options);
  if (name == "numbers-words") return make_number_pairs(NumberTask::numbers_words, options);
  if (name == "words-numbers") return make_number_pairs(NumberTask::words_numbers, options);
  if (name == "roman-arabic") return make_number_pairs(NumberTask::roman_arabic, options);
  if (name == "arabic-roman") return make_number_pairs(NumberTask::arabic_roman, options);
  if (name == "restoration") return make_restoration_pairs(options);
  if (name == "pairs") return make_file_pairs(options);
  const auto near = nearest(name, pair_task_names());
  const auto& names = pair_task_names();
  fail("pairs: there is no task {}; {}choose {}", bary::quote(name),
       near ? fmt::format("did you mean {}? Or ", *near) : "", joined_with_or(names.data(), names.size()));
}

std::vector<TextPair> listed_pairs(const PairTask& task, PairSplit split) {
  BARY_CHECK(task.is_list(), "{}: there are too many pairs to list; draw them with drawn_pairs", task.name());
  std::vector<TextPair> pairs;
  pairs.reserve(static_cast<size_t>(task.count(split)));
  for (int64_t i = 0; i < task.count(split); ++i) pairs.push_back(task.listed(split, i));
  return pairs;
}

std::vector<TextPair> drawn_pairs(const PairTask& task, uint64_t seed, PairSplit split, int64_t count) {
  BARY_CHECK(count >= 0, "{}: {} pairs were asked for; ask for 0 or more", task.name(), count);
  std::vector<TextPair> pairs;
  for (int64_t i = 0; i < count; ++i) pairs.push_back(task.draw(seed, split, static_cast<uint64_t>(i)));
  return pairs;
}

SyntheticOptions partition_of(const PairOptions& options) {
  return {.seed = options.seed, .held_out = options.held_out};
}

RandomStream draw_stream(uint64_t seed, PairSplit split, uint64_t index) {
  return draw_stream(seed, split == PairSplit::training ? SyntheticSplit::training : SyntheticSplit::held_out, index);
}

int64_t PairCensus::count(std::string_view text) {
  int64_t characters = 0;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end; ++characters) {
    const Utf8Char c = decode_utf8(p, end);
    if (c.code != kBadByte) seen_[c.code] = true;
    p += c.size;
  }
  return characters;
}

void PairCensus::add(std::string_view source, std::string_view target) {
  longest_source_ = std::max(longest_source_, count(source));
  longest_target_ = std::max(longest_target_, count(target));
}

PairFacts PairCensus::facts(std::string name, double held_out, std::string sha256) const {
  PairFacts facts{std::move(name), held_out, {}, longest_source_, longest_target_, std::move(sha256)};
  for (uint32_t code = 0; code < seen_.size(); ++code) {
    if (seen_[code]) append_utf8(facts.alphabet, code);
  }
  return facts;
}

ListedPairs::ListedPairs(PairFacts facts, int64_t training, int64_t held_out)
    : PairTask(std::move(facts)), training_(training), held_out_(held_out) {
  const double share = this->facts().held_out;
  BARY_CHECK(training > 0,
             "{}: val_fraction {} leaves none of {} pairs to learn from; choose a smaller one or give more", name(),
             share, training + held_out);
  BARY_CHECK(held_out > 0 || share == 0, "{}: val_fraction {} holds out none of {} pairs; choose a larger one, or 0",
             name(), share, training);
}

void ListedPairs::check_not_empty(PairSplit split) const {
  BARY_CHECK(count(split) > 0, "{}: nothing is held out (val_fraction 0); choose a share such as 0.1", name());
}

TextPair ListedPairs::draw(uint64_t seed, PairSplit split, uint64_t index) const {
  check_not_empty(split);
  RandomStream stream = draw_stream(seed, split, index);
  return pair_at(split, static_cast<int64_t>(stream.below(static_cast<uint64_t>(count(split)))));
}

TextPair ListedPairs::listed(PairSplit split, int64_t index) const {
  check_not_empty(split);
  BARY_CHECK(index >= 0 && index < count(split), "{}: there is no pair {}; choose 0 to {}", name(), index,
             count(split) - 1);
  return pair_at(split, index);
}

void check_size_of_text(std::string_view what, std::string_view text) {
  BARY_CHECK(std::ssize(text) <= kMostPairBytes, "{} has {} bytes, at most {} are possible; give a part of it", what,
             text.size(), kMostPairBytes);
  const int64_t lines = std::count(text.begin(), text.end(), '\n') + 1;
  BARY_CHECK(lines <= kMostPairs, "{} has {} lines, at most {} are possible; give a part of it", what, lines,
             kMostPairs);
}

void check_line(std::string_view what, int64_t number, std::string_view line) {
  BARY_CHECK(std::ssize(line) <= kMostTextBytes, "{}, line {}: it has {} bytes, at most {} are possible; cut it", what,
             number, line.size(), kMostTextBytes);
  const size_t wrong = utf8_error(line);
  BARY_CHECK(wrong == line.size(),
             "{}, line {}: byte {} of the line (0x{:02x}) is not UTF-8; convert the text to UTF-8, for example with "
             "iconv",
             what, number, wrong + 1, static_cast<unsigned char>(line[wrong]));
}

}  // namespace bary
