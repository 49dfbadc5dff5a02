// SPDX-License-Identifier: Apache-2.0
// The distinct pieces of a text and how often each occurs: all that a BPE trainer needs to see of it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/pretokenize.h"

namespace bary {

struct CountedPiece {
  std::string_view bytes;  // points into the text it was counted in
  int64_t count = 1;
};

struct PieceCounts {
  std::vector<CountedPiece> pieces;  // in order of first occurrence
  int64_t bytes = 0;                 // of text, special tokens cut out
  int64_t total = 0;                 // pieces, each time they occur
};

// A piece lies within one document; the text of `specials` is cut out first, and ends the pieces beside it.
PieceCounts count_pieces(std::span<const std::string_view> documents, Pattern pattern,
                         std::span<const std::string> specials = {});

}  // namespace bary
