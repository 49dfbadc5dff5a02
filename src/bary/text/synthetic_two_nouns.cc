// SPDX-License-Identifier: Apache-2.0
// The two-noun sentences, closed and leaky. The text of a sentence is one and the same; the forms differ in which nouns
// may stand where and in what is held out.
#include <algorithm>
#include <array>
#include <utility>

#include "bary/base/error.h"
#include "bary/text/synthetic_languages.h"

namespace bary {
namespace {

using Pair = std::pair<int32_t, int32_t>;  // token ids of {x} and {y}

constexpr std::array kFunctionWords{"the", "did", "not", "cross", "because", "it",
                                    "was", "too", ",",   "so",    "waited",  "."};
// The first four describe who crosses, the last four what is crossed.
constexpr std::array kAdjectives{"tired", "scared", "slow", "weak", "wet", "wide", "busy", "steep"};
constexpr size_t kCrosserAdjectives = 4;
constexpr std::array kAnimals{"animal", "dog",  "cat",   "horse", "goat",  "fox",  "bear",   "deer",
                              "cow",    "wolf", "sheep", "duck",  "mouse", "lion", "rabbit", "camel"};
constexpr std::array kPlaces{"street", "road",   "river",  "bridge", "field",  "canal",  "valley", "park",
                             "lake",   "square", "garden", "stream", "meadow", "forest", "desert", "track"};
constexpr int kMostOfAKind = 16;
constexpr int32_t kFirstAdjective = kFunctionWords.size();
constexpr int32_t kFirstNoun = kFirstAdjective + kAdjectives.size();
constexpr int64_t kSentenceLength = 18;
constexpr int32_t kAnswer = 15;  // the word after "so the"

std::vector<std::string> vocabulary_with(const std::vector<std::string>& nouns) {
  std::vector<std::string> words(kFunctionWords.begin(), kFunctionWords.end());
  words.insert(words.end(), kAdjectives.begin(), kAdjectives.end());
  words.insert(words.end(), nouns.begin(), nouns.end());
  return words;
}

template <class Item>
void shuffle(std::vector<Item>& items, RandomStream& stream) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[stream.below(i)]);
}

struct Partition {
  std::vector<Pair> training, held_out;
};

class TwoNouns : public SyntheticLanguage {
 public:
  TwoNouns(std::string name, const std::vector<std::string>& nouns, Partition pairs)
      : SyntheticLanguage(std::move(name), vocabulary_with(nouns), kSentenceLength), pairs_(std::move(pairs)) {}

  int64_t count(SyntheticSplit split) const override { return std::ssize(pairs(split)) * std::ssize(kAdjectives); }

  SyntheticSequence listed(SyntheticSplit split, int64_t index) const override {
    BARY_CHECK(index >= 0 && index < count(split), "{}: sentence {} is outside 0..{}", name(), index, count(split) - 1);
    const auto i = static_cast<size_t>(index);
    return sentence(pairs(split)[i / kAdjectives.size()], i % kAdjectives.size());
  }

  SyntheticSequence sequence(uint64_t seed, SyntheticSplit split, uint64_t index) const override {
    BARY_CHECK(count(split) > 0, "{}: nothing is held out; choose a held_out above 0", name());
    return listed(split,
                  static_cast<int64_t>(draw_stream(seed, split, index).below(static_cast<uint64_t>(count(split)))));
  }

 private:
  const std::vector<Pair>& pairs(SyntheticSplit split) const {
    return split == SyntheticSplit::training ? pairs_.training : pairs_.held_out;
  }

  static SyntheticSequence sentence(Pair nouns, size_t adjective) {
    enum : int32_t { the, did, not_, cross, because, it, was, too, comma, so, waited, stop };
    const auto [x, y] = nouns;
    const bool crosser = adjective < kCrosserAdjectives;
    SyntheticSequence made;
    made.tokens = {the,    x,   did, not_,
                   cross,  the, y,   because,
                   it,     was, too, kFirstAdjective + int32_t(adjective),
                   comma,  so,  the, crosser ? x : y,
                   waited, stop};
    made.scored.assign(made.tokens.size(), 0);
    made.scored[kAnswer] = 1;
    made.answer = kAnswer;
    made.wrong = crosser ? y : x;
    return made;
  }

  Partition pairs_;
};

size_t held_out_pairs(const char* language, const SyntheticOptions& options, size_t pairs) {
  check_held_out(language, options.held_out);
  return static_cast<size_t>(options.held_out * static_cast<double>(pairs));
}

}  // namespace

std::unique_ptr<SyntheticLanguage> make_two_nouns(const SyntheticOptions& options) {
  constexpr const char* kName = "two-nouns";
  const int pool = or_default(options.symbols, 16);
  check_range(kName, "the number of nouns (symbols)", pool, 2, 2 * kMostOfAKind);
  std::vector<std::string> nouns;
  for (int i = 0; i < pool; ++i) {
    nouns.emplace_back(i % 2 == 0 ? kAnimals[static_cast<size_t>(i / 2)] : kPlaces[static_cast<size_t>(i / 2)]);
  }
  std::vector<Pair> unordered;
  for (int a = 0; a < pool; ++a) {
    for (int b = a + 1; b < pool; ++b) unordered.emplace_back(kFirstNoun + a, kFirstNoun + b);
  }
  RandomStream stream(options.seed, Purpose::synthetic, kPartition);
  shuffle(unordered, stream);
  const size_t held_out = held_out_pairs(kName, options, unordered.size());
  Partition pairs;
  for (size_t i = 0; i < unordered.size(); ++i) {
    Pair one = unordered[i];
    if (stream.below(2) == 1) std::swap(one.first, one.second);
    // One order is held out; the reversed one always teaches.
    (i < held_out ? pairs.held_out : pairs.training).push_back(one);
    pairs.training.emplace_back(one.second, one.first);
  }
  return std::make_unique<TwoNouns>(kName, nouns, std::move(pairs));
}

std::unique_ptr<SyntheticLanguage> make_two_nouns_leaky(const SyntheticOptions& options) {
  constexpr const char* kName = "two-nouns-leaky";
  const int of_a_kind = or_default(options.symbols, kMostOfAKind);
  check_range(kName, "the number of nouns of a kind (symbols)", of_a_kind, 2, kMostOfAKind);
  std::vector<std::string> nouns(kAnimals.begin(), kAnimals.begin() + of_a_kind);
  nouns.insert(nouns.end(), kPlaces.begin(), kPlaces.begin() + of_a_kind);
  std::vector<Pair> all;
  for (int animal = 0; animal < of_a_kind; ++animal) {
    for (int place = 0; place < of_a_kind; ++place)
      all.emplace_back(kFirstNoun + animal, kFirstNoun + of_a_kind + place);
  }
  RandomStream stream(options.seed, Purpose::synthetic, kPartition);
  shuffle(all, stream);
  const auto border = all.begin() + static_cast<std::ptrdiff_t>(held_out_pairs(kName, options, all.size()));
  return std::make_unique<TwoNouns>(kName, nouns, Partition{{border, all.end()}, {all.begin(), border}});
}

}  // namespace bary
