// SPDX-License-Identifier: Apache-2.0
#include "bary/report/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace bary {
namespace {

TEST(Format, Grouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(124439808), "124,439,808");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Format, ShortCount) {
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(999.4), "999");
  EXPECT_EQ(short_count(999.6), "1.00k");
  EXPECT_EQ(short_count(20692), "20.7k");
  EXPECT_EQ(short_count(999499), "999k");
  EXPECT_EQ(short_count(999500), "1.00M");
  EXPECT_EQ(short_count(1.5), "1.50");
  EXPECT_EQ(short_count(-20692), "-20.7k");
  EXPECT_EQ(short_count(1e18), "1000000T");
  EXPECT_EQ(short_count(std::nan("")), "nan");
}

TEST(Format, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 kB");
  EXPECT_EQ(bytes_text(12345678), "12.3 MB");
  EXPECT_EQ(bytes_text(-2000), "-2.00 kB");
  EXPECT_EQ(bytes_text(std::numeric_limits<int64_t>::max()), "9223 PB");
}

TEST(Format, Duration) {
  EXPECT_EQ(duration_text(0), "0.00s");
  EXPECT_EQ(duration_text(0.42), "0.42s");
  EXPECT_EQ(duration_text(9.996), "10.0s");
  EXPECT_EQ(duration_text(59.94), "59.9s");
  EXPECT_EQ(duration_text(59.96), "1m 00s");
  EXPECT_EQ(duration_text(65), "1m 05s");
  EXPECT_EQ(duration_text(3599.4), "59m 59s");
  EXPECT_EQ(duration_text(3599.6), "1h 00m");
  EXPECT_EQ(duration_text(7380), "2h 03m");
  EXPECT_EQ(duration_text(86399), "1d 00h");
  EXPECT_EQ(duration_text(273600), "3d 04h");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(std::nan("")), "?");
  EXPECT_EQ(duration_text(1e300), "?");
}

TEST(Format, PercentAndNumber) {
  EXPECT_EQ(percent_text(0.4234), "42.3%");
  EXPECT_EQ(percent_text(std::nan("")), "?");
  EXPECT_EQ(number_text(2.50000), "2.5");
  EXPECT_EQ(number_text(0.00012345678), "0.0001235");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Format, DisplayWidth) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("Zürich"), 6);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("🙂"), 2);
  EXPECT_EQ(display_width("\xff\xc3"), 2);
}

TEST(Format, FittedCutsBetweenCharacters) {
  EXPECT_EQ(fitted("abc", 3), "abc");
  EXPECT_EQ(fitted("abcd", 3), "ab…");
  EXPECT_EQ(fitted("abcdef", 5, false), "ab...");
  EXPECT_EQ(fitted("日本語", 4), "日…");
  EXPECT_EQ(fitted("abc", 0), "");
  EXPECT_EQ(fitted("abcdef", 2, false), "..");
}

}  // namespace
}  // namespace bary
