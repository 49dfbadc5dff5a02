// SPDX-License-Identifier: Apache-2.0
#include "bary/text/pretokenize.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bary/base/random.h"
#include "bary/text/unicode.h"
#include "bary/text/utf8.h"

namespace bary {
namespace {

using Strings = std::vector<std::string>;

Strings split(std::string_view text, Pattern pattern = Pattern::gpt2) {
  Strings pieces;
  PieceScanner scanner(pattern, text);
  for (std::string_view piece; scanner.next(piece);) pieces.emplace_back(piece);
  return pieces;
}

// The pattern alternative by alternative, over characters: slow, and in the order in which the regular expression
// reads.
Strings split_by_definition(std::string_view text) {
  struct Unit {
    std::string bytes;
    bool letter, number, space;
  };
  std::vector<Unit> units;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    const CharClass k = unicode_table()[c.code];
    units.push_back(
        {std::string(p, static_cast<size_t>(c.size)), is_letter(k), k == CharClass::number, k == CharClass::space});
    p += c.size;
  }
  const size_t n = units.size();
  const auto run = [&](size_t i, auto&& in) {
    const size_t start = i + (units[i].bytes == " " ? 1 : 0);
    size_t j = start;
    while (j < n && in(units[j])) ++j;
    return j > start ? j : i;  // i: no match
  };
  const auto match = [&](size_t i) {
    for (std::string_view word : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
      std::string here;
      for (size_t k = i; k < n && k < i + word.size(); ++k) here += units[k].bytes;
      if (here == word) return i + word.size();
    }
    size_t j = run(i, [](const Unit& u) { return u.letter; });
    if (j == i) j = run(i, [](const Unit& u) { return u.number; });
    if (j == i) j = run(i, [](const Unit& u) { return !u.letter && !u.number && !u.space; });
    if (j > i) return j;
    while (j < n && units[j].space) ++j;
    return j < n && j - i > 1 ? j - 1 : j;
  };
  Strings pieces;
  for (size_t i = 0; i < n;) {
    const size_t j = match(i);
    std::string piece;
    for (; i < j; ++i) piece += units[i].bytes;
    pieces.push_back(piece);
  }
  return pieces;
}

TEST(Unicode, ClassesOfVersion16) {
  const UnicodeTable& table = unicode_table();
  EXPECT_EQ(table['A'], CharClass::lu);
  EXPECT_EQ(table['z'], CharClass::ll);
  EXPECT_EQ(table['7'], CharClass::number);
  EXPECT_EQ(table['_'], CharClass::other);
  EXPECT_EQ(table[0x1C5], CharClass::lt);
  EXPECT_EQ(table[0x2B0], CharClass::lm);
  EXPECT_EQ(table[0x5B63], CharClass::lo);  // in the middle of a run of 20,992
  EXPECT_EQ(table[0x301], CharClass::mark);
  EXPECT_EQ(table[0x10FFFF], CharClass::other);
  EXPECT_EQ(table[0x110000], CharClass::other);
  EXPECT_EQ(table[kBadByte], CharClass::other);
  EXPECT_LT(table.bytes(), 100000u);
}

TEST(Unicode, WhiteSpaceIsExactlyThis) {
  std::vector<uint32_t> spaces;
  for (uint32_t code = 0; code < 0x110000; ++code)
    if (unicode_table()[code] == CharClass::space) spaces.push_back(code);
  EXPECT_EQ(spaces, (std::vector<uint32_t>{0x9,    0xA,    0xB,    0xC,    0xD,    0x20,   0x85,   0xA0,   0x1680,
                                           0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                           0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}));
}

TEST(Pretokenize, EdgesAndWords) {
  EXPECT_EQ(split(""), Strings{});
  EXPECT_EQ(split(" "), Strings{" "});
  EXPECT_EQ(split("\n\n"), Strings{"\n\n"});
  EXPECT_EQ(split("First Citizen:\n"), (Strings{"First", " Citizen", ":", "\n"}));
  EXPECT_EQ(split("a  b"), (Strings{"a", " ", " b"}));
  EXPECT_EQ(split("a\n b"), (Strings{"a", "\n", " b"}));
  EXPECT_EQ(split("a \nb"), (Strings{"a", " ", "\n", "b"}));
  EXPECT_EQ(split("a   "), (Strings{"a", "   "}));
  EXPECT_EQ(split("x12y 34"), (Strings{"x", "12", "y", " 34"}));
  EXPECT_EQ(split("\tEnd"), (Strings{"\t", "End"}));
}

TEST(Pretokenize, Contractions) {
  EXPECT_EQ(split("it's we'll they've I'd"), (Strings{"it", "'s", " we", "'ll", " they", "'ve", " I", "'d"}));
  EXPECT_EQ(split("'sad"), (Strings{"'s", "ad"}));
  EXPECT_EQ(split("!'s"), (Strings{"!'", "s"}));  // the run of others has taken the apostrophe
  EXPECT_EQ(split(" 's"), (Strings{" '", "s"}));
  EXPECT_EQ(split("''s"), (Strings{"''", "s"}));
  EXPECT_EQ(split("'s's"), (Strings{"'s", "'s"}));
  EXPECT_EQ(split("DON'T"), (Strings{"DON", "'", "T"}));  // lower case only
  EXPECT_EQ(split("'l"), (Strings{"'", "l"}));
  EXPECT_EQ(split("'"), Strings{"'"});
}

// Public bug reports, by the character that was treated wrongly.
TEST(Pretokenize, Row15NextLineIsWhiteSpace) { EXPECT_EQ(split("!\xC2\x85!"), (Strings{"!", "\xC2\x85", "!"})); }

TEST(Pretokenize, Row16WideSpaceAndCombiningMarks) {
  EXPECT_EQ(split("a\u2002b"), (Strings{"a", "\u2002", "b"}));
  EXPECT_EQ(split("a\u2002\u2002b"), (Strings{"a", "\u2002", "\u2002", "b"}));  // one code point is given back
  EXPECT_EQ(split("नमस्ते"), (Strings{"नमस", "्", "त", "े"}));
}

TEST(Pretokenize, Row18LettersOfUnicode16AndNot17) {
  for (std::string letter : {"\uA7CB", "\u1C89", "\U0002EBF0", "\U000105C0"}) {
    EXPECT_EQ(split("a" + letter), Strings{"a" + letter});
  }
  EXPECT_EQ(split("a\uA7CE"), (Strings{"a", "\uA7CE"}));  // a letter only since 17.0
  for (std::string not_space : {"\u180E", "\u200B", "\uFEFF", "\x1C", "\x1F"})
    EXPECT_EQ(split("!" + not_space + "!"), Strings{"!" + not_space + "!"});
}

TEST(Pretokenize, Row7LineFeedsAreKept) { EXPECT_EQ(split("hello\nworld"), (Strings{"hello", "\n", "world"})); }

TEST(Pretokenize, BadBytesAreOthersOneByOne) {
  EXPECT_EQ(split("a\xFF"
                  "b"),
            (Strings{"a", "\xFF", "b"}));
  EXPECT_EQ(split(" \xED\xA0\x80!"), (Strings{" \xED\xA0\x80!"}));  // a lone surrogate
  EXPECT_EQ(split("\xC3"), Strings{"\xC3"});
  EXPECT_EQ(split(std::string("a\0b", 3)), (Strings{"a", std::string("\0", 1), "b"}));
}

// Long enough for the block scanner, whose blocks then begin and end everywhere.
TEST(Pretokenize, BlocksAgreeWithTheDefinition) {
  const std::vector<std::string> parts = {"a",  "Z",    "s",    "'",  "'s",     "'re",   "'ll",  "l",      " ",
                                          " ",  "\n",   "\t",   "1",  "23",     "!",     "(",    "é",      "\u2002",
                                          "季", "\xFF", "\xE5", "'t", "\u0085", "words", "    ", "\u0301", "'v"};
  for (uint64_t trial = 0; trial < 3000; ++trial) {
    RandomStream random(trial, Purpose::test);
    const uint64_t kinds = trial % 3 == 0 ? 15 : parts.size();  // two thirds with other than ASCII
    std::string text;
    for (uint64_t i = random.below(400); i > 0; --i) {
      std::string part = parts[random.below(kinds)];
      for (uint64_t repeat = random.below(20) == 0 ? random.below(100) : 1; repeat > 0; --repeat) text += part;
    }
    ASSERT_EQ(split(text), split_by_definition(text)) << trial;
  }
}

TEST(Pretokenize, EveryShortStringOfTheTrickyCharacters) {
  const std::string alphabet = "a s'r1e!\n";
  for (size_t code = 0; code < 9 * 9 * 9 * 9 * 9; ++code) {
    std::string text;
    for (size_t rest = code, i = 0; i < 5; ++i, rest /= 9) text += alphabet[rest % 9];
    const Strings expected = split_by_definition(text);
    ASSERT_EQ(split(text), expected) << text;
    // The same in front of text that makes the block scanner take it.
    const std::string tail = "X" + std::string(70, '!');
    const Strings in_block = split(text + tail);
    const Strings in_block_expected = split_by_definition(text + tail);
    ASSERT_EQ(in_block, in_block_expected) << text;
  }
}

TEST(Pretokenize, NoneIsOnePiece) {
  EXPECT_EQ(split("a b\nc", Pattern::none), Strings{"a b\nc"});
  EXPECT_EQ(split("", Pattern::none), Strings{});
}

TEST(Pretokenize, Row10LongRunsNeedNoStack) {
  EXPECT_EQ(split(std::string(3000000, 'A')).size(), 1u);
  EXPECT_EQ(split(std::string(3000000, ' ')).size(), 1u);
  EXPECT_EQ(split(std::string(3000000, ' ') + "a"), (Strings{std::string(2999999, ' '), " a"}));
}

TEST(Pretokenize, SafeCutsChangeNothing) {
  const std::string text = "one two\nthree\n\n four\n  five\r\nsix\n\xC2\xA0seven\neight 'll\n'll nine\n";
  for (size_t from = 0; from <= text.size(); ++from) {
    const size_t cut = safe_cut(Pattern::gpt2, text, from);
    ASSERT_TRUE(cut >= from && cut <= text.size());
    Strings joined = split(text.substr(0, cut)), rest = split(text.substr(cut));
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, split(text)) << from;
  }
  EXPECT_EQ(safe_cut(Pattern::gpt2, "a\nb", 0), 2u);
  EXPECT_EQ(safe_cut(Pattern::none, "a\nb", 0), 3u);
}

TEST(Pretokenize, NamesAndRegexesGoBothWays) {
  for (Pattern pattern : {Pattern::none, Pattern::gpt2}) EXPECT_EQ(pattern_named(pattern_name(pattern)), pattern);
  EXPECT_EQ(pattern_of_regex(pattern_regex(Pattern::gpt2)), Pattern::gpt2);
  EXPECT_EQ(pattern_named("gpt4"), std::nullopt);
  EXPECT_EQ(pattern_of_regex("[a-z]+"), std::nullopt);
}

}  // namespace
}  // namespace bary
