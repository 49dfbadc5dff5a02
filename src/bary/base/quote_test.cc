// SPDX-License-Identifier: Apache-2.0
#include "bary/base/quote.h"

#include <gtest/gtest.h>

namespace bary {
namespace {

TEST(Quoted, NothingDangerousReachesTheTerminal) {
  EXPECT_EQ(quote(""), "\"\"");
  EXPECT_EQ(quote("pre"), "\"pre\"");
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("\x1b[31m"), "\"\\x1b[31m\"");
  EXPECT_EQ(quote(std::string_view("\0\n\t\x7f", 4)), "\"\\x00\\n\\t\\x7f\"");
  EXPECT_EQ(quote("\xc2\x9b"
                  "31m"),
            "\"\\xc2\\x9b31m\"");
}

TEST(Quoted, KeepsUtf8AndShowsBrokenBytes) {
  EXPECT_EQ(quote("Zürich 🙂"), "\"Zürich 🙂\"");
  EXPECT_EQ(quote("\xc3"), "\"\\xc3\"");
  EXPECT_EQ(quote("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");           // surrogate
  EXPECT_EQ(quote("\xc0\xaf"), "\"\\xc0\\xaf\"");                    // overlong
  EXPECT_EQ(quote("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\"");  // above U+10FFFF
}

TEST(Quoted, CutsBetweenCharacters) {
  EXPECT_EQ(quote("abcdef", 4), "\"abcd\" (and 2 bytes more)");
  EXPECT_EQ(quote("abcü", 4), "\"abc\" (and 2 bytes more)");
  EXPECT_EQ(quote("abcd", 4), "\"abcd\"");
}

TEST(QuoteIfOdd, PlainNamesStay) {
  EXPECT_EQ(quote_if_odd("h.0.attn_c-1"), "h.0.attn_c-1");
  EXPECT_EQ(quote_if_odd(""), "\"\"");
  EXPECT_EQ(quote_if_odd("a b"), "\"a b\"");
  EXPECT_EQ(quote_if_odd("\x1b"), "\"\\x1b\"");
}

TEST(JoinedWithOr, Lists) {
  const std::string names[] = {"a", "b", "c"};
  EXPECT_EQ(joined_with_or(names, 0), "nothing");
  EXPECT_EQ(joined_with_or(names, 1), "a");
  EXPECT_EQ(joined_with_or(names, 2), "a or b");
  EXPECT_EQ(joined_with_or(names, 3), "a, b or c");
}

TEST(Printable, KeepsLinesAndDisarmsTheRest) {
  EXPECT_EQ(printable("a \"b\"\n\tc \\"), "a \"b\"\n\tc \\");
  EXPECT_EQ(printable("\x1b]52;c;x\x07"), "\\x1b]52;c;x\\x07");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m \xFF \r"),
            "\\xc2\\x9b31m \\xff \\x0d");
  EXPECT_EQ(printable("\xC3\xA9\xE2\x86\x92"), "\xC3\xA9\xE2\x86\x92");
}

}  // namespace
}  // namespace bary
