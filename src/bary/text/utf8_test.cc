// SPDX-License-Identifier: Apache-2.0
#include "bary/text/utf8.h"

#include <gtest/gtest.h>

#include "bary/base/random.h"

namespace bary {
namespace {

TEST(Utf8, EveryCodePointBothWays) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const Utf8Char c = decode_utf8(text.data(), text.data() + text.size());
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(static_cast<size_t>(c.size), text.size());
    for (size_t cut = 1; cut < text.size(); ++cut)
      ASSERT_EQ(decode_utf8(text.data(), text.data() + cut).code, kBadByte);
  }
}

TEST(Utf8, RefusesOverlongSurrogatesAndTooLarge) {
  for (std::string_view bad :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xBF"}) {
    EXPECT_EQ(decode_utf8(bad.data(), bad.data() + bad.size()).code, kBadByte);
    EXPECT_EQ(utf8_error(bad), 0u);
  }
  EXPECT_EQ(utf8_error("ok\xC3\xA9\xFF"), 4u);
  EXPECT_EQ(utf8_error("ok"), 2u);
}

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(replace_invalid_utf8("a\xF0\x9F\xA4z"), "a\uFFFDz");          // three bytes of one character: one mark
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate is three bad bytes
  EXPECT_EQ(replace_invalid_utf8("\xC3"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xEF\xBF\xBD"), "\uFFFD");  // a real U+FFFD stays
  EXPECT_EQ(replace_invalid_utf8(""), "");
}

TEST(Utf8Stream, HoldsBackOnlyWhatMayStillBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\xA4"), "");
  EXPECT_EQ(stream.push("\x97!"), "🤗!");
  EXPECT_EQ(stream.push("\xF0"), "");
  EXPECT_EQ(stream.push("text"), "\uFFFDtext");  // replaced as soon as it is known to be broken
  EXPECT_EQ(stream.push("\xFF"), "\uFFFD");      // never valid: not held
  EXPECT_EQ(stream.push("\uFFFD"), "\uFFFD");
  EXPECT_EQ(stream.push("\xE5\xAD"), "");
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, CutsDoNotMatter) {
  const std::string bytes = {'a',    '\xC3', '\xA9', '\xE5', '\xAD', '\xA3',
                             '\xF0', '\x9F', '\xA4', '\x97', '\xFF', '\xED'};
  for (uint64_t trial = 0; trial < 5000; ++trial) {
    RandomStream random(trial, Purpose::test);
    std::string text, streamed;
    for (uint64_t i = random.below(40); i > 0; --i) text += bytes[random.below(bytes.size())];
    Utf8Stream stream;
    for (size_t at = 0; at < text.size();) {
      const size_t step = 1 + random.below(5);
      const std::string part = stream.push(std::string_view(text).substr(at, step));
      ASSERT_EQ(utf8_error(part), part.size());
      streamed += part;
      at += step;
    }
    streamed += stream.flush();
    ASSERT_EQ(streamed, replace_invalid_utf8(text)) << trial;
  }
}

}  // namespace
}  // namespace bary
