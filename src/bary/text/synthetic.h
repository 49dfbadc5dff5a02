// SPDX-License-Identifier: Apache-2.0
// Built-in languages that need no file, with a known right answer: a model's score on them says what it can do.
//   two-nouns        "the {x} did not cross the {y} because it was too {adj} , so the {ref} waited ."
//                    Both nouns from one pool, either place; the adjective alone decides: tired scared slow weak make
//                    {ref} the first noun, wet wide busy steep the second. Held out: ordered pairs whose reversed order
//                    is in training. So the bag of words can't know which noun is meant: two hops can.
//   two-nouns-leaky  the same with animals that cross and places that are crossed: each word tells its side, so a bag
//                    of words is enough. The pair shows why the sentence has to be closed.
//   repeat           [r][r]: random tokens, then the same again: what an induction head completes.
//   copy reverse sort   letters, a separator, and the same letters copied, reversed or sorted.
// Randomness: RandomStream(seed, Purpose::synthetic, ...); a sequence is named by (seed, split, index).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bary {

enum class SyntheticSplit : uint8_t { training, held_out };  // never share a sequence

struct SyntheticSequence {
  std::vector<int32_t> tokens;
  // scored[i] = 1: predicting tokens[i] from the tokens before it is the exercise. As a loss over targets, use
  // scored[i + 1] at position i.
  std::vector<uint8_t> scored;
  int32_t answer = -1;  // two-nouns: position of {ref}, the word after "so the"; -1 elsewhere
  int32_t wrong = -1;   // two-nouns: id of the noun that is wrong there; -1 elsewhere
};

struct SyntheticOptions {
  uint64_t seed = 0;       // which part is held out
  int symbols = 0;         // nouns (leaky: of each kind), tokens or letters. 0: 16, 16, 64, 26
  int length = 0;          // repeat: tokens in r; copy, reverse, sort: letters. 0: 32, 8
  double held_out = 0.25;  // share of the pairs (two-nouns: of the unordered pairs, one order each) or sequences
};

class SyntheticLanguage {
 public:
  virtual ~SyntheticLanguage() = default;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& vocabulary() const { return vocabulary_; }  // word i is token i
  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.size()); }
  int64_t sequence_length() const { return sequence_length_; }  // tokens in every sequence

  // The index-th draw of the stream `seed`; draws repeat where there are few sequences.
  virtual SyntheticSequence sequence(uint64_t seed, SyntheticSplit split, uint64_t index) const = 0;

  // Every sequence of a split, once, where they can be listed (two-nouns); count is 0 for languages too large to list.
  virtual int64_t count(SyntheticSplit split) const;
  virtual SyntheticSequence listed(SyntheticSplit split, int64_t index) const;

  std::string words(std::span<const int32_t> tokens) const;  // joined by spaces
  int32_t id(std::string_view word) const;                   // throws on a word that is not in the vocabulary
  // `lines` draws as plain text, one sequence a line, words parted by one space.
  std::string text(int64_t lines, SyntheticSplit split = SyntheticSplit::training, uint64_t seed = 0) const;

 protected:
  SyntheticLanguage(std::string name, std::vector<std::string> vocabulary, int64_t sequence_length)
      : name_(std::move(name)), vocabulary_(std::move(vocabulary)), sequence_length_(sequence_length) {}

 private:
  std::string name_;
  std::vector<std::string> vocabulary_;
  int64_t sequence_length_;
};

const std::vector<std::string>& synthetic_names();  // as above, the names of the command line
bool is_synthetic(std::string_view name);
// Throws on an unknown name or on options the language can't have.
std::unique_ptr<SyntheticLanguage> make_synthetic(std::string_view name, const SyntheticOptions& options = {});

}  // namespace bary
