// SPDX-License-Identifier: Apache-2.0
// What needs no model: the scores a model on pairs has to beat.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/pairs.h"

namespace bary {

// Each source as it is.
std::vector<std::string> copied_sources(std::span<const TextPair> pairs);

std::vector<std::string> targets_of(std::span<const TextPair> pairs);  // to score against

// Word by word: each word of a source becomes what it most often was in training, spelling and attached punctuation
// ("we" -> "We", "speak" -> "speak,"). Ties: what was seen first. Words never seen stay as they are.
class WordRestoration {
 public:
  WordRestoration() = default;
  explicit WordRestoration(std::span<const TextPair> training);

  // Words correspond by place. A pair whose sides differ in their number of words says nothing and is passed over.
  void learn(const TextPair& pair);
  std::string restore(std::string_view source) const;  // its words parted by one space
  std::vector<std::string> restore(std::span<const TextPair> pairs) const;

  int64_t words() const { return std::ssize(spellings_); }

 private:
  struct Seen {
    int64_t times = 0;
    int64_t since = 0;  // when it was first seen
  };
  struct Spellings {
    std::map<std::string, Seen, std::less<>> seen;
    std::string best;  // kept up while learning
    Seen best_seen;
  };

  std::map<std::string, Spellings, std::less<>> spellings_;
  int64_t clock_ = 0;
};

}  // namespace bary
