// SPDX-License-Identifier: Apache-2.0
#include "bary/text/number_words.h"

#include <array>

#include "bary/base/error.h"

namespace bary {
namespace {

constexpr std::array<const char*, 20> kSmall{
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kTens{"",      "",      "twenty",  "thirty", "forty",
                                            "fifty", "sixty", "seventy", "eighty", "ninety"};

void append_word(std::string& text, const char* word) {
  if (!text.empty()) text += ' ';
  text += word;
}

// 1 to 999; nothing for 0, which is silent inside a larger number.
void append_below_thousand(std::string& text, size_t number) {
  if (number >= 100) {
    append_word(text, kSmall[number / 100]);
    append_word(text, "hundred");
    number %= 100;
  }
  if (number >= 20) {
    append_word(text, kTens[number / 10]);
    if (number % 10 != 0) text += '-', text += kSmall[number % 10];
  } else if (number > 0) {
    append_word(text, kSmall[number]);
  }
}

struct Numeral {
  int64_t value;
  const char* letters;
};
constexpr std::array<Numeral, 13> kNumerals{{{1000, "M"},
                                             {900, "CM"},
                                             {500, "D"},
                                             {400, "CD"},
                                             {100, "C"},
                                             {90, "XC"},
                                             {50, "L"},
                                             {40, "XL"},
                                             {10, "X"},
                                             {9, "IX"},
                                             {5, "V"},
                                             {4, "IV"},
                                             {1, "I"}}};

}  // namespace

std::string number_in_words(int64_t number) {
  BARY_CHECK(number >= 0 && number <= kHighestInWords,
             "number_in_words: {} can't be spelt out here, the range is 0 to {}; choose a number inside it", number,
             kHighestInWords);
  if (number == 0) return kSmall[0];
  std::string text;
  if (number >= 1000) {
    append_below_thousand(text, static_cast<size_t>(number / 1000));
    append_word(text, "thousand");
  }
  append_below_thousand(text, static_cast<size_t>(number % 1000));
  return text;
}

std::string roman_numeral(int64_t number) {
  BARY_CHECK(number >= 1 && number <= kHighestRoman,
             "roman_numeral: {} has no standard Roman numeral, the range is 1 to {}; choose a number inside it", number,
             kHighestRoman);
  std::string text;
  for (const Numeral& numeral : kNumerals) {
    for (; number >= numeral.value; number -= numeral.value) text += numeral.letters;
  }
  return text;
}

}  // namespace bary
