// SPDX-License-Identifier: Apache-2.0
// Learns byte-level BPE merges (Sennrich, Haddow and Birch, "Neural machine translation of rare words with subword
// units", 2016; on bytes as in GPT-2): ids 0..255 are the bytes; each step joins the most frequent pair of neighbouring
// tokens, everywhere and from the left, into the next id. Merges never cross the edge of a piece.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/piece_counts.h"
#include "bary/text/pretokenize.h"

namespace bary {

// Which of several equally frequent pairs is joined. In real text every second step is such a tie.
enum class TieRule : uint8_t {
  first,  // the pair that occurs first in the text as it is tokenized now (minbpe's)
  hf,     // the lowest pair of ids as Hugging Face numbers them: bytes in the order of their printable characters
  bytes,  // the pair whose left bytes, then right bytes, sort first
};

std::string_view tie_rule_name(TieRule rule);  // "first", "hf", "bytes"
std::optional<TieRule> tie_rule_named(std::string_view name);

struct BpeOptions {
  int vocab_size = 1024;  // 256 bytes, the merges, and the special tokens
  Pattern pattern = Pattern::gpt2;
  TieRule ties = TieRule::first;
  int64_t min_frequency = 1;               // a pair that occurs less often is not joined
  int64_t max_token_length = 0;            // in bytes, inclusive; 0: no limit
  std::vector<std::string> specials = {};  // cut out of the text, numbered after the merges
  // Called after each step; what it throws ends the training.
  std::function<void(int64_t done, int64_t wanted)> progress = {};
};

struct BpeStep {
  int32_t left = 0, right = 0;  // joined into id 256 + step
  int64_t count = 0;            // places where the pair stood, overlapping ones included ("aaa" has two)
  int64_t ties = 1;             // pairs with that count, this one included
  int64_t tokens = 0;           // that the whole text has after this step
};

struct BpeTraining {
  std::vector<BpeStep> steps;
  int64_t bytes = 0;  // of text
  int64_t pieces = 0;
  int64_t distinct_pieces = 0;
  int64_t tokens = 0;  // after the last step
  std::string note;    // why there are fewer merges than asked for; empty if there are not
};

// Documents are texts of their own: no piece spans two. Time is nearly linear in the distinct pieces, also where one
// piece is megabytes long. Refused: vocab_size below 256 + specials, min_frequency below 1, a negative length.
BpeTraining train_bpe(std::span<const std::string_view> documents, const BpeOptions& options);

// The same from pieces counted elsewhere; `first` then means first in this list. Options pattern and specials are the
// caller's business. Refused besides: a negative count.
BpeTraining train_bpe_counts(std::span<const CountedPiece> pieces, const BpeOptions& options);

}  // namespace bary
