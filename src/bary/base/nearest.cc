// SPDX-License-Identifier: Apache-2.0
#include "bary/base/nearest.h"

#include <algorithm>
#include <vector>

namespace bary {
namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t cut = name.find('_');
    if (cut != 0) parts.push_back(name.substr(0, cut));
    if (cut == std::string_view::npos) return parts;
    name.remove_prefix(cut + 1);
  }
}

// Matching less than the whole name costs one slip, so that a whole match wins.
int distance_to_name(std::string_view word, std::string_view name) {
  int best = edit_distance(word, name);
  if (word.size() < name.size()) best = std::min(best, 1 + edit_distance(word, name.substr(0, word.size())));
  std::string initials;
  auto parts = parts_of(name);
  for (auto part : parts) {
    if (part.size() > 1) best = std::min(best, 1 + edit_distance(word, part));
    if (!part.empty()) initials += part[0];
  }
  if (parts.size() > 1 && word == initials) best = std::min(best, 1);
  return best;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // The worst case is bounded: a hostile word of a megabyte is far from everything anyway.
  constexpr size_t kLongest = 256;
  if (a.size() > kLongest || b.size() > kLongest) {
    return static_cast<int>(std::min<size_t>(std::max(a.size(), b.size()), 1 << 30));
  }
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      int change = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty()) return std::nullopt;
  int limit = 1 + static_cast<int>(std::min<size_t>(word.size(), 256) / 4);
  std::optional<std::string> found;
  int best = limit + 1;
  for (const auto& name : candidates) {
    int distance = distance_to_name(word, name);
    if (distance < best && distance < static_cast<int>(std::max(word.size(), name.size())))
      best = distance, found = name;
  }
  return found;
}

}  // namespace bary
