// SPDX-License-Identifier: Apache-2.0
#include "bary/text/ngram_matches.h"

#include <algorithm>
#include <compare>
#include <map>
#include <string_view>

namespace bary {
namespace {

using Ngram = std::span<const uint32_t>;

std::weak_ordering order(Ngram a, Ngram b) {
  return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
}

// Sorted, equal ones side by side: counting needs no table, and its cost does not depend on how values hash.
std::vector<Ngram> sorted_ngrams(std::span<const uint32_t> sequence, size_t n) {
  std::vector<Ngram> ngrams;
  for (size_t i = 0; i + n <= sequence.size(); ++i) ngrams.push_back(sequence.subspan(i, n));
  std::sort(ngrams.begin(), ngrams.end(), [](Ngram a, Ngram b) { return order(a, b) < 0; });
  return ngrams;
}

}  // namespace

NgramCounts ngram_matches(std::span<const uint32_t> left, std::span<const uint32_t> right, size_t n) {
  const std::vector<Ngram> a = sorted_ngrams(left, n), b = sorted_ngrams(right, n);
  NgramCounts counts{std::ssize(a), std::ssize(b), 0};
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::weak_ordering which = order(a[i], b[j]);
    counts.matched += which == 0;
    i += which <= 0;
    j += which >= 0;
  }
  return counts;
}

NumberedTokens number_tokens(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::map<std::string_view, uint32_t> numbers;
  const auto numbered = [&numbers](const std::vector<std::string>& tokens) {
    std::vector<uint32_t> made;
    for (const std::string& token : tokens) {
      made.push_back(numbers.try_emplace(token, static_cast<uint32_t>(numbers.size())).first->second);
    }
    return made;
  };
  NumberedTokens pair;
  pair.left = numbered(left);
  pair.right = numbered(right);
  return pair;
}

}  // namespace bary
