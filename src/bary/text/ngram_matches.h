// SPDX-License-Identifier: Apache-2.0
// Inside text/: n-grams that two sequences share, each as often as both have it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bary {

struct NgramCounts {
  int64_t left = 0, right = 0;  // n-grams of each: length - n + 1, none where it is shorter
  int64_t matched = 0;          // sum over distinct n-grams of the smaller count
};
NgramCounts ngram_matches(std::span<const uint32_t> left, std::span<const uint32_t> right, size_t n);

// Tokens as numbers, equal tokens as equal numbers, so that n-grams compare by number.
struct NumberedTokens {
  std::vector<uint32_t> left, right;
};
NumberedTokens number_tokens(const std::vector<std::string>& left, const std::vector<std::string>& right);

}  // namespace bary
