// SPDX-License-Identifier: Apache-2.0
// Numbers as they are spelt out. Both throw on a number outside their range.
#pragma once
#include <cstdint>
#include <string>

namespace bary {

inline constexpr int64_t kHighestInWords = 999'999, kHighestRoman = 3999;

// English cardinals as written in the United States: no "and", a hyphen in 21 to 99.
//   342 -> "three hundred forty-two", 70'013 -> "seventy thousand thirteen"
std::string number_in_words(int64_t number);  // 0 to 999,999

// Standard (subtractive) Roman numerals: 1994 -> "MCMXCIV".
std::string roman_numeral(int64_t number);  // 1 to 3999

}  // namespace bary
