// SPDX-License-Identifier: Apache-2.0
#include "bary/text/pair_baselines.h"

#include "bary/text/metrics.h"

namespace bary {

std::vector<std::string> copied_sources(std::span<const TextPair> pairs) {
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs) texts.push_back(pair.source);
  return texts;
}

std::vector<std::string> targets_of(std::span<const TextPair> pairs) {
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs) texts.push_back(pair.target);
  return texts;
}

WordRestoration::WordRestoration(std::span<const TextPair> training) {
  for (const TextPair& pair : training) learn(pair);
}

void WordRestoration::learn(const TextPair& pair) {
  const auto from = split_words(pair.source), to = split_words(pair.target);
  if (from.size() != to.size()) return;
  for (size_t i = 0; i < from.size(); ++i) {
    Spellings& word = spellings_[std::string(from[i])];
    Seen& seen = word.seen[std::string(to[i])];
    if (seen.times++ == 0) seen.since = clock_++;
    const Seen& best = word.best_seen;
    if (seen.times > best.times || (seen.times == best.times && seen.since < best.since)) {
      word.best = to[i];
      word.best_seen = seen;
    }
  }
}

std::string WordRestoration::restore(std::string_view source) const {
  std::string restored;
  for (const std::string_view word : split_words(source)) {
    const auto found = spellings_.find(word);
    if (!restored.empty()) restored += ' ';
    restored += found == spellings_.end() ? word : std::string_view(found->second.best);
  }
  return restored;
}

std::vector<std::string> WordRestoration::restore(std::span<const TextPair> pairs) const {
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs) texts.push_back(restore(pair.source));
  return texts;
}

}  // namespace bary
