// SPDX-License-Identifier: Apache-2.0
// Character classes of Unicode 16.0, all that the known pre-tokenisation patterns ask for. Source: the Unicode
// Character Database's General_Category and White_Space, by tools/unicode/generate.mjs.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bary {

// \s is White_Space: U+0009-000D 0020 0085 00A0 1680 2000-200A 2028 2029 202F 205F 3000, and nothing else.
enum class CharClass : uint8_t { other, space, number, mark, lu, lt, lm, lo, ll };

inline bool is_letter(CharClass c) { return c >= CharClass::lu; }  // \p{L}

extern const char* const kUnicodeVersion;
extern const char* const kUnicodeRuns;  // run-length text, see unicode_table.cc

// Two stages: the block of a code point's upper bits, then its class within the block. Equal blocks are kept once.
class UnicodeTable {
 public:
  UnicodeTable();
  // Codes past U+10FFFF (a bad byte among them) are `other`.
  CharClass operator[](uint32_t code) const {
    if (code > 0x10FFFF) return CharClass::other;
    return classes_[size_t{block_[code >> 8]} << 8 | (code & 0xFF)];
  }
  size_t bytes() const { return sizeof block_ + classes_.size(); }

 private:
  std::array<uint16_t, 0x1100> block_;
  std::vector<CharClass> classes_;
};

const UnicodeTable& unicode_table();  // built once, at first use

}  // namespace bary
