// SPDX-License-Identifier: Apache-2.0
#include "bary/text/unicode.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace bary {
namespace {

CharClass class_of_letter(char letter) {
  constexpr std::string_view kLetters = ".SNMUTDOL";  // in the order of the enum
  return static_cast<CharClass>(kLetters.find(letter));
}

std::vector<CharClass> expand_runs() {
  std::vector<CharClass> classes;
  classes.reserve(0x110000);
  for (const char* p = kUnicodeRuns; *p != 0;) {
    const CharClass run = class_of_letter(*p++);
    size_t length = 0;
    for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z'); ++p)
      length = length * 36 + static_cast<size_t>(*p <= '9' ? *p - '0' : *p - 'a' + 10);
    classes.insert(classes.end(), std::max<size_t>(length, 1), run);
  }
  return classes;
}

}  // namespace

UnicodeTable::UnicodeTable() {
  const std::vector<CharClass> all = expand_runs();
  std::map<std::vector<CharClass>, uint16_t> seen;
  for (size_t b = 0; b < block_.size(); ++b) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(b << 8);
    std::vector<CharClass> block(begin, begin + 256);
    const auto [where, added] = seen.try_emplace(std::move(block), static_cast<uint16_t>(seen.size()));
    if (added) classes_.insert(classes_.end(), begin, begin + 256);
    block_[b] = where->second;
  }
}

const UnicodeTable& unicode_table() {
  static const UnicodeTable table;
  return table;
}

}  // namespace bary
