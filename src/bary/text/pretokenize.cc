// SPDX-License-Identifier: Apache-2.0
#include "bary/text/pretokenize.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bary/text/unicode.h"
#include "bary/text/utf8.h"

namespace bary {
namespace {

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// The four kinds of character that GPT-2's pattern tells apart.
enum Kind : uint8_t { kOther, kLetter, kNumber, kSpace };

Kind kind_of(CharClass c) {
  if (is_letter(c)) return kLetter;
  return c == CharClass::number ? kNumber : c == CharClass::space ? kSpace : kOther;
}

struct AsciiKinds {
  std::array<Kind, 128> of{};
  constexpr AsciiKinds() {
    for (unsigned c = 0; c < 128; ++c) {
      const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
      of[c] = letter ? kLetter : c >= '0' && c <= '9' ? kNumber : c == ' ' || (c >= 9 && c <= 13) ? kSpace : kOther;
    }
  }
};
constexpr AsciiKinds kAscii;

struct Char {
  Kind kind;
  int size;
};

inline Char char_at(const char* p, const char* end) {
  const auto byte = static_cast<uint8_t>(*p);
  if (byte < 128) return {kAscii.of[byte], 1};
  const Utf8Char c = decode_utf8(p, end);
  return {kind_of(unicode_table()[c.code]), c.size};
}

// 2 or 3 where one of 's 't 'm 'd 're 've 'll begins at p, else 0.
size_t contraction(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return 0;
  if (p[1] == 's' || p[1] == 't' || p[1] == 'm' || p[1] == 'd') return 2;
  if (end - p < 3) return 0;
  const bool three = (p[2] == 'e' && (p[1] == 'r' || p[1] == 'v')) || (p[1] == 'l' && p[2] == 'l');
  return three ? 3 : 0;
}

// The end of the piece that begins at p < end, one character at a time.
const char* gpt2_piece_end(const char* p, const char* end) {
  if (const size_t size = contraction(p, end)) return p + size;
  Char first = char_at(p, end);
  if (*p == ' ' && p + 1 < end) {
    const Char second = char_at(p + 1, end);
    if (second.kind != kSpace) first = second, ++p;
  }
  p += first.size;
  int last = first.size;
  bool several = false;
  for (; p < end; p += last) {
    const Char c = char_at(p, end);
    if (c.kind != first.kind) return first.kind == kSpace && several ? p - last : p;
    last = c.size, several = true;
  }
  return p;
}

constexpr size_t kBlock = 64;

// Bit i of the result = bit `bit` of byte i.
inline uint64_t gather_bit(const std::array<uint8_t, kBlock>& bytes, int bit) {
  uint64_t mask = 0;
  for (size_t i = 0; i < kBlock; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    // The product collects the lowest bits of eight bytes, in order, in its top byte.
    mask |= (((word >> bit) & 0x0101010101010101) * 0x0102040810204080 >> 56) << i;
  }
  return mask;
}

// Where pieces begin among the bytes p[1 .. 63], given that one begins at p; *trusted = how many of the 64 bytes the
// answer is good for: ASCII only, and with the three bytes in view on which a decision may depend.
uint64_t gpt2_starts(const char* p, int* trusted) {
  std::array<uint8_t, kBlock> kinds;
  for (size_t i = 0; i < kBlock; ++i) {
    const auto c = static_cast<uint8_t>(p[i]);
    const uint8_t letter = static_cast<uint8_t>((c | 32) - 'a') < 26;
    const uint8_t number = static_cast<uint8_t>(c - '0') < 10;
    const uint8_t blank = c == ' ';
    const uint8_t space = static_cast<uint8_t>(c - 9) < 5;
    const uint8_t quote = c == '\'';
    kinds[i] = static_cast<uint8_t>(letter | number << 1 | (space | blank) << 2 | blank << 3 | quote << 4 | (c & 0x80));
  }
  const uint64_t letters = gather_bit(kinds, 0), numbers = gather_bit(kinds, 1), spaces = gather_bit(kinds, 2);
  const uint64_t blanks = gather_bit(kinds, 3), foreign = gather_bit(kinds, 7);
  const uint64_t others = ~(letters | numbers | spaces);
  *trusted = std::countr_zero(foreign) - 3;
  // A run begins, unless a blank in front of it belongs to it.
  uint64_t starts =
      ((letters & ~(letters << 1)) | (numbers & ~(numbers << 1)) | (others & ~(others << 1))) & ~(blanks << 1);
  // White space begins, or gives back its last character to what follows.
  starts |= (spaces & ~(spaces << 1)) | (spaces & ~(spaces >> 1));
  for (uint64_t quotes = gather_bit(kinds, 4) & (starts | 1); quotes != 0; quotes &= quotes - 1) {
    const int at = std::countr_zero(quotes);
    if (at >= *trusted) break;
    const size_t size = contraction(p + at, p + kBlock);
    if (size == 0) continue;
    starts &= ~(uint64_t{1} << (at + 1));
    starts |= uint64_t{1} << (at + static_cast<int>(size));
  }
  return starts & ~uint64_t{1};
}

// Fills in the ends of the pieces from `begin` on, until there is room for less than a block's.
size_t gpt2_fill(std::string_view text, size_t begin, size_t* ends, size_t room) {
  const char* const base = text.data();
  size_t found = 0, at = begin;
  while (at < text.size() && room - found >= kBlock) {
    if (text.size() - at >= kBlock) {
      int trusted = 0;
      uint64_t starts = gpt2_starts(base + at, &trusted);
      starts &= trusted <= 0 ? 0 : (uint64_t{1} << trusted) - 1;
      if (starts != 0) {
        for (; starts != 0; starts &= starts - 1) ends[found++] = at + static_cast<size_t>(std::countr_zero(starts));
        at = ends[found - 1];
        continue;
      }
    }
    at = static_cast<size_t>(gpt2_piece_end(base + at, base + text.size()) - base);
    ends[found++] = at;
  }
  return found;
}

}  // namespace

std::string_view pattern_name(Pattern pattern) { return pattern == Pattern::gpt2 ? "gpt2" : "none"; }

std::string_view pattern_regex(Pattern pattern) { return pattern == Pattern::gpt2 ? kGpt2Regex : std::string_view(); }

std::optional<Pattern> pattern_named(std::string_view name) {
  for (Pattern pattern : {Pattern::none, Pattern::gpt2})
    if (name == pattern_name(pattern)) return pattern;
  return std::nullopt;
}

std::optional<Pattern> pattern_of_regex(std::string_view regex) {
  if (regex == kGpt2Regex) return Pattern::gpt2;
  return std::nullopt;
}

bool PieceScanner::refill() {
  if (begin_ == text_.size()) return false;
  used_ = 0;
  if (pattern_ == Pattern::none) {
    ends_[0] = text_.size();
    found_ = 1;
  } else {
    found_ = gpt2_fill(text_, begin_, ends_.data(), ends_.size());
  }
  return true;
}

size_t safe_cut(Pattern pattern, std::string_view text, size_t from) {
  if (pattern == Pattern::none) return text.size();
  const auto is_word = [&](size_t i) {
    const auto c = static_cast<uint8_t>(text[i]);
    return c < 128 && kAscii.of[c] != kSpace;
  };
  // Behind a line feed that stands alone: a longer run of white space would give its last character back, and does not
  // where the text ends.
  for (size_t at = std::max<size_t>(from, 1); at < text.size(); ++at) {
    const size_t line_feed = text.find('\n', at - 1);
    if (line_feed == std::string_view::npos || line_feed + 1 >= text.size()) break;
    at = line_feed + 1;
    if (is_word(at) && (line_feed == 0 || is_word(line_feed - 1))) return at;
  }
  return text.size();
}

}  // namespace bary
