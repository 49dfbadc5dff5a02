// SPDX-License-Identifier: Apache-2.0
#include "bary/text/synthetic.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"
#include "bary/text/synthetic_languages.h"

namespace bary {

int64_t SyntheticLanguage::count(SyntheticSplit) const { return 0; }

SyntheticSequence SyntheticLanguage::listed(SyntheticSplit, int64_t) const {
  fail("{}: there are too many sequences to list; draw them with sequence(seed, split, index)", name_);
}

std::string SyntheticLanguage::words(std::span<const int32_t> tokens) const {
  std::string line;
  for (const int32_t token : tokens) {
    BARY_CHECK(token >= 0 && token < vocab_size(), "{}: token {} is not in 0..{}; use ids of this language", name_,
               token, vocab_size() - 1);
    if (!line.empty()) line += ' ';
    line += vocabulary_[static_cast<size_t>(token)];
  }
  return line;
}

int32_t SyntheticLanguage::id(std::string_view word) const {
  const auto found = std::find(vocabulary_.begin(), vocabulary_.end(), word);
  BARY_CHECK(found != vocabulary_.end(), "{}: the word {} is not in its vocabulary; see vocabulary()", name_,
             bary::quote(word));
  return static_cast<int32_t>(found - vocabulary_.begin());
}

std::string SyntheticLanguage::text(int64_t lines, SyntheticSplit split, uint64_t seed) const {
  BARY_CHECK(lines >= 0, "{}: {} lines were asked for; ask for 0 or more", name_, lines);
  std::string all;
  for (int64_t i = 0; i < lines; ++i) {
    all += words(sequence(seed, split, static_cast<uint64_t>(i)).tokens);
    all += '\n';
  }
  return all;
}

const std::vector<std::string>& synthetic_names() {
  static const std::vector<std::string> names{"two-nouns", "two-nouns-leaky", "repeat", "copy", "reverse", "sort"};
  return names;
}

bool is_synthetic(std::string_view name) {
  return std::find(synthetic_names().begin(), synthetic_names().end(), name) != synthetic_names().end();
}

std::unique_ptr<SyntheticLanguage> make_synthetic(std::string_view name, const SyntheticOptions& options) {
  if (name == "two-nouns") return make_two_nouns(options);
  if (name == "two-nouns-leaky") return make_two_nouns_leaky(options);
  if (name == "repeat") return make_repeat(options);
  if (name == "copy") return make_letter_task(LetterTask::copy, options);
  if (name == "reverse") return make_letter_task(LetterTask::reverse, options);
  if (name == "sort") return make_letter_task(LetterTask::sort, options);
  const auto near = nearest(name, synthetic_names());
  const auto& names = synthetic_names();
  fail("synthetic: there is no language {}; {}choose {}", bary::quote(name),
       near ? fmt::format("did you mean {}? Or ", *near) : "", joined_with_or(names.data(), names.size()));
}

RandomStream draw_stream(uint64_t seed, SyntheticSplit split, uint64_t index) {
  return RandomStream(seed, Purpose::synthetic, split == SyntheticSplit::training ? kDrawTraining : kDrawHeldOut,
                      index);
}

int or_default(int chosen, int normal) { return chosen == 0 ? normal : chosen; }

void check_range(const char* language, const char* what, int64_t value, int64_t lowest, int64_t highest) {
  BARY_CHECK(value >= lowest && value <= highest, "{}: {} is {}, it must be {} to {}", language, what, value, lowest,
             highest);
}

void check_held_out(const char* language, double share) {
  BARY_CHECK(share >= 0 && share < 1, "{}: held_out is {}, it must be at least 0 and below 1; 0.25 holds out a quarter",
             language, share);
}

namespace {

// A uniform number in [0, 1) from the contents, chained through the block cipher one token at a time.
double side_of(const std::vector<int32_t>& tokens, uint64_t seed) {
  std::array<uint32_t, 4> state{};
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (const int32_t token : tokens) {
    state[3] ^= static_cast<uint32_t>(token) + 1;
    state = philox4x32(state, key);
  }
  return state[0] * 0x1p-32;
}

}  // namespace

bool is_held_out(const SyntheticOptions& options, const std::vector<int32_t>& tokens) {
  return side_of(tokens, options.seed) < options.held_out;
}

std::vector<int32_t> draw_on_side(const SyntheticOptions& options, SyntheticSplit split, RandomStream stream,
                                  const std::function<std::vector<int32_t>(RandomStream&)>& draw) {
  constexpr int kMostTries = 100'000;
  for (int i = 0; i < kMostTries; ++i) {
    std::vector<int32_t> tokens = draw(stream);
    if (is_held_out(options, tokens) == (split == SyntheticSplit::held_out)) return tokens;
  }
  fail(
      "synthetic: no {} sequence in {} draws with held_out {}; choose more symbols, a larger length or a held_out "
      "between 0 and 1",
      split == SyntheticSplit::held_out ? "held-out" : "training", kMostTries, options.held_out);
}

}  // namespace bary
