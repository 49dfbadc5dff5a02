// SPDX-License-Identifier: Apache-2.0
// Cuts text into the pieces that merges may not cross. The pieces always tile the text: what the pattern does not
// match, invalid UTF-8 among it, is a piece too, never dropped.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bary {

enum class Pattern : uint8_t {
  none,  // the whole text is one piece
  gpt2,  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+   (GPT-2's src/encoder.py)
};

std::string_view pattern_name(Pattern pattern);   // "none", "gpt2"
std::string_view pattern_regex(Pattern pattern);  // as files spell it; empty for none
std::optional<Pattern> pattern_named(std::string_view name);
std::optional<Pattern> pattern_of_regex(std::string_view regex);

// Hand-written scanner: no recursion, no allocation, linear in the text. \p{L}, \p{N} and \s are those of Unicode 16.0
// (bary/text/unicode.h); a byte that is not part of valid UTF-8 counts as one character that is none of the three.
//   PieceScanner pieces(Pattern::gpt2, text);
//   for (std::string_view piece; pieces.next(piece);) ...
class PieceScanner {
 public:
  PieceScanner(Pattern pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  bool next(std::string_view& piece) {
    if (used_ == found_ && !refill()) return false;
    const size_t end = ends_[used_++];
    piece = std::string_view(text_.data() + begin_, end - begin_);
    begin_ = end;
    return true;
  }

 private:
  bool refill();

  Pattern pattern_;
  std::string_view text_;
  size_t begin_ = 0;  // of the next piece
  size_t used_ = 0;
  size_t found_ = 0;
  std::array<size_t, 256> ends_;  // where the pieces found in advance end
};

// A place at or after `from` where a piece begins whatever stands around it, so that text can be cut there and its
// parts handled on their own with the same result; text.size() if there is none.
size_t safe_cut(Pattern pattern, std::string_view text, size_t from);

}  // namespace bary
