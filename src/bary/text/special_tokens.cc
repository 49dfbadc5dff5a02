// SPDX-License-Identifier: Apache-2.0
#include "bary/text/special_tokens.h"

#include <algorithm>
#include <utility>

#include "bary/base/quote.h"

namespace bary {

SpecialTextError::SpecialTextError(std::string token, size_t offset)
    : Error(ErrorKind::input,
            fmt::format("encode: the text contains the special token {} at byte {}; allow it, encode special tokens as "
                        "text, or remove it",
                        quote(token), offset)),
      token_(std::move(token)),
      offset_(offset) {}

SpecialMatcher::SpecialMatcher(std::span<const SpecialToken> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) add(tokens[i].text, i);
  finish();
}

SpecialMatcher::SpecialMatcher(std::span<const std::string> texts) {
  for (size_t i = 0; i < texts.size(); ++i) add(texts[i], i);
  finish();
}

void SpecialMatcher::add(std::string_view text, size_t index) {
  BARY_CHECK(!text.empty(), "special tokens: number {} is empty text, which is everywhere; give it a text", index);
  entries_.push_back({std::string(text), index});
}

void SpecialMatcher::finish() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  for (size_t i = 1; i < entries_.size(); ++i)
    BARY_CHECK(entries_[i].text != entries_[i - 1].text, "special tokens: {} is given twice; name each token once",
               quote(entries_[i].text));
  for (const Entry& entry : entries_) begins_[static_cast<uint8_t>(entry.text[0])] = true;
  if (std::count(begins_.begin(), begins_.end(), true) == 1)
    only_first_ = static_cast<int>(std::find(begins_.begin(), begins_.end(), true) - begins_.begin());
}

size_t SpecialMatcher::next_candidate(std::string_view text, size_t from) const {
  if (only_first_ >= 0) return std::min(text.find(static_cast<char>(only_first_), from), text.size());
  while (from < text.size() && !begins_[static_cast<uint8_t>(text[from])]) ++from;
  return from;
}

// Narrows the sorted texts byte by byte: among those that agree so far, one that is complete stands first.
std::optional<SpecialMatcher::Match> SpecialMatcher::longest_at(std::string_view text, size_t at,
                                                                const std::vector<bool>& enabled) const {
  std::optional<Match> best;
  auto low = entries_.begin(), high = entries_.end();
  for (size_t depth = 0; low != high; ++depth) {
    if (low->text.size() == depth) {
      if (enabled.empty() || enabled[low->index]) best = Match{at, at + depth, low->index};
      ++low;
    }
    if (at + depth >= text.size()) break;
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto byte_of = [depth](const Entry& e) { return static_cast<uint8_t>(e.text[depth]); };
    low = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e) < byte; });
    high = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e) == byte; });
  }
  return best;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text, size_t from,
                                                          const std::vector<bool>& enabled) const {
  if (entries_.empty()) return std::nullopt;
  for (size_t at = next_candidate(text, from); at < text.size(); at = next_candidate(text, at + 1))
    if (std::optional<Match> match = longest_at(text, at, enabled)) return match;
  return std::nullopt;
}

}  // namespace bary
