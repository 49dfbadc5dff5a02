// SPDX-License-Identifier: Apache-2.0
#include "bary/text/number_words.h"

#include <gtest/gtest.h>

#include <map>

#include "bary/base/error.h"
#include "bary/text/metrics.h"

namespace bary {
namespace {

TEST(NumberWords, EdgesAndTheirNeighbours) {
  const std::map<int64_t, std::string> want{
      {0, "zero"},
      {1, "one"},
      {12, "twelve"},
      {19, "nineteen"},
      {20, "twenty"},
      {21, "twenty-one"},
      {40, "forty"},
      {99, "ninety-nine"},
      {100, "one hundred"},
      {101, "one hundred one"},
      {110, "one hundred ten"},
      {342, "three hundred forty-two"},
      {999, "nine hundred ninety-nine"},
      {1000, "one thousand"},
      {1001, "one thousand one"},
      {12'000, "twelve thousand"},
      {70'013, "seventy thousand thirteen"},
      {100'000, "one hundred thousand"},
      {100'100, "one hundred thousand one hundred"},
      {999'999, "nine hundred ninety-nine thousand nine hundred ninety-nine"},
  };
  for (const auto& [number, words] : want) EXPECT_EQ(number_in_words(number), words);
  EXPECT_THROW(number_in_words(-1), Error);
  try {
    number_in_words(1'000'000);
    FAIL() << "a million was spelt out";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "number_in_words: 1000000 can't be spelt out here, the range is 0 to 999999; choose a number inside it");
  }
}

// Another way round: adds up the words.
int64_t value_of(const std::string& words) {
  static const std::map<std::string, int64_t, std::less<>> kValues{
      {"zero", 0},      {"one", 1},       {"two", 2},       {"three", 3},    {"four", 4},     {"five", 5},
      {"six", 6},       {"seven", 7},     {"eight", 8},     {"nine", 9},     {"ten", 10},     {"eleven", 11},
      {"twelve", 12},   {"thirteen", 13}, {"fourteen", 14}, {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17},
      {"eighteen", 18}, {"nineteen", 19}, {"twenty", 20},   {"thirty", 30},  {"forty", 40},   {"fifty", 50},
      {"sixty", 60},    {"seventy", 70},  {"eighty", 80},   {"ninety", 90}};
  int64_t thousands = 0, sum = 0;
  for (const std::string_view word : split_words(words)) {
    if (word == "hundred") {
      sum *= 100;
    } else if (word == "thousand") {
      thousands = sum * 1000, sum = 0;
    } else {
      const size_t hyphen = word.find('-');
      sum += kValues.at(std::string(word.substr(0, hyphen)));
      if (hyphen != std::string::npos) sum += kValues.at(std::string(word.substr(hyphen + 1)));
    }
  }
  return thousands + sum;
}

TEST(NumberWords, ReadBack) {
  for (int64_t number = 0; number <= kHighestInWords; number += number < 2000 ? 1 : 37) {
    ASSERT_EQ(value_of(number_in_words(number)), number);
  }
}

TEST(RomanNumerals, EdgesAndTheirNeighbours) {
  const std::map<int64_t, std::string> want{
      {1, "I"},
      {3, "III"},
      {4, "IV"},
      {5, "V"},
      {8, "VIII"},
      {9, "IX"},
      {10, "X"},
      {14, "XIV"},
      {39, "XXXIX"},
      {40, "XL"},
      {49, "XLIX"},
      {50, "L"},
      {90, "XC"},
      {99, "XCIX"},
      {100, "C"},
      {400, "CD"},
      {500, "D"},
      {900, "CM"},
      {1000, "M"},
      {1994, "MCMXCIV"},
      {3888, "MMMDCCCLXXXVIII"},
      {3999, "MMMCMXCIX"},
  };
  for (const auto& [number, numeral] : want) EXPECT_EQ(roman_numeral(number), numeral);
  EXPECT_THROW(roman_numeral(0), Error);
  EXPECT_THROW(roman_numeral(-4), Error);
  EXPECT_THROW(roman_numeral(4000), Error);
}

TEST(RomanNumerals, ReadBack) {
  const std::map<char, int64_t> values{{'I', 1}, {'V', 5}, {'X', 10}, {'L', 50}, {'C', 100}, {'D', 500}, {'M', 1000}};
  for (int64_t number = 1; number <= kHighestRoman; ++number) {
    const std::string numeral = roman_numeral(number);
    int64_t sum = 0;
    for (size_t i = 0; i < numeral.size(); ++i) {
      const int64_t value = values.at(numeral[i]);
      const bool before_larger = i + 1 < numeral.size() && values.at(numeral[i + 1]) > value;
      sum += before_larger ? -value : value;
    }
    ASSERT_EQ(sum, number);
    for (const char* four : {"IIII", "XXXX", "CCCC", "MMMM", "VV", "LL", "DD"}) {
      ASSERT_EQ(numeral.find(four), std::string::npos) << numeral;
    }
  }
}

}  // namespace
}  // namespace bary
