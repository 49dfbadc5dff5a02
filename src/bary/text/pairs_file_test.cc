// SPDX-License-Identifier: Apache-2.0
// Pairs from a text (restoration) and from files of the user's.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/refusal_test.h"
#include "bary/text/corpus_command.h"
#include "bary/text/pair_tasks.h"

namespace bary {
namespace {
namespace fs = std::filesystem;

constexpr PairSplit kTraining = PairSplit::training, kHeldOut = PairSplit::held_out;
using Pairs = std::vector<TextPair>;

std::unique_ptr<PairTask> restoration(const std::string& text, double held_out = 0) {
  return make_pair_task("restoration", {.held_out = held_out, .text = text});
}

TEST(Restoration, WhatIsTakenAway) {
  EXPECT_EQ(without_case_and_punctuation(""), "");
  EXPECT_EQ(without_case_and_punctuation(" \t\r--?! "), "");
  EXPECT_EQ(without_case_and_punctuation("We know't, we know't."), "we knowt we knowt");
  EXPECT_EQ(without_case_and_punctuation("  Sir -- no;\tYES!"), "sir no yes");
  EXPECT_EQ(without_case_and_punctuation("!\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~"), "09azaz");
  // Bytes past ASCII are nobody's business: upper case, dashes, not even UTF-8.
  EXPECT_EQ(without_case_and_punctuation("\xc3\x89T\xc3\x89 \xe2\x80\x94 \xff\x80."),
            "\xc3\x89t\xc3\x89 \xe2\x80\x94 \xff\x80");
}

TEST(Restoration, LinesWithNothingLeftAreSkipped) {
  const auto task = restoration("\nFirst Citizen:\r\n\n  \n--\n\rSpeak, speak.\n\n");
  const Pairs want{{"first citizen", "First Citizen:"}, {"speak speak", "\rSpeak, speak."}};
  EXPECT_EQ(listed_pairs(*task, kTraining), want);
  EXPECT_EQ(restoration("No end")->listed(kTraining, 0), (TextPair{"no end", "No end"}));
}

TEST(Restoration, TheEndOfTheTextIsHeldOut) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += fmt::format("Line {}.\n\n", i);
  const auto task = restoration(text, 0.1);
  ASSERT_EQ(task->count(kTraining), 22);  // floor(0.9 * 25)
  ASSERT_EQ(task->count(kHeldOut), 3);
  EXPECT_EQ(task->listed(kTraining, 21).target, "Line 21.");
  EXPECT_EQ(task->listed(kHeldOut, 0).target, "Line 22.");
  EXPECT_EQ(task->listed(kHeldOut, 2).source, "line 24");
}

TEST(Restoration, TextsThatGiveNoPairs) {
  expect_contains(message_of([] { restoration(""); }), "restoration: the text is empty");
  expect_contains(message_of([] { restoration("\n...\n"); }), "has 5 bytes but no line with a letter or digit");
  expect_contains(message_of([] { restoration("One line", 0.1); }),
                  "val_fraction 0.1 leaves none of 1 pairs to learn from");
  expect_contains(message_of([] { restoration("Good\nb\xe9te\n"); }), "line 2: byte 2 of the line (0xe9) is not UTF-8");
  expect_contains(message_of([] { restoration("a\n" + std::string((1 << 20) + 1, 'b')); }),
                  "line 2: it has 1048577 bytes, at most 1048576 are possible");
  EXPECT_EQ(restoration(std::string(1 << 20, 'b'))->facts().longest_target, 1 << 20);
}

TEST(Restoration, TinyShakespeare) {
  const char* shared = std::getenv("BARY_SHARED");
  const fs::path file =
      (shared != nullptr ? fs::path(shared) : fs::path(BARY_SOURCE_DIR) / "../shared") / "data" / "tinyshakespeare.txt";
  if (!fs::exists(file)) GTEST_SKIP() << "SKIPPED: no " << file << "; set BARY_SHARED";
  const auto task = restoration(read_file(file), 0.1);
  EXPECT_EQ(task->count(kTraining), 29'499);
  EXPECT_EQ(task->count(kHeldOut), 3278);
  EXPECT_EQ(task->facts().longest_target, 63);
  EXPECT_EQ(task->listed(kTraining, 1).source, "before we proceed any further hear me speak");
}

class FilePairsTest : public ::testing::Test {
 protected:
  fs::path put(const std::string& name, std::string_view bytes) const {
    write_file_atomic(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  std::unique_ptr<PairTask> table(std::string_view bytes, double held_out = 0) const {
    return make_pair_task("pairs", {.held_out = held_out, .file = put("t.tsv", bytes)});
  }
  std::unique_ptr<PairTask> aligned(std::string_view sources, std::string_view targets) const {
    return make_pair_task("pairs",
                          {.held_out = 0, .file = put("s.txt", sources), .target_file = put("t.txt", targets)});
  }
  void expect_refused(std::string_view bytes, const std::string& part) const {
    const std::string message = message_of([&] { table(bytes); });
    expect_contains(message, "pairs: " + (folder_.path() / "t.tsv").string());
    expect_contains(message, part);
  }
  TemporaryFolder folder_;
};

TEST_F(FilePairsTest, PairsAreKeptAsTheyAre) {
  const Pairs want{{"a", "b"}, {" ein Satz ", "\xc3\xa9t\xc3\xa9, "}, {"only the end", ""}};
  const std::string lines = "a\tb\n ein Satz \t\xc3\xa9t\xc3\xa9, \nonly the end\t";
  EXPECT_EQ(listed_pairs(*table(lines), kTraining), want);
  EXPECT_EQ(listed_pairs(*table(lines + "\n"), kTraining), want);
  EXPECT_EQ(table(lines)->alphabet(), " ,Sabdehilnotyz\xc3\xa9");
  EXPECT_EQ(table(lines)->facts().longest_source, 12);
  EXPECT_EQ(table(lines)->facts().longest_target, 5);
}

TEST_F(FilePairsTest, WindowsFiles) {
  const Pairs want{{"a", "b"}, {"c", ""}};
  EXPECT_EQ(listed_pairs(*table("\xef\xbb\xbf"
                                "a\tb\r\nc\t\r\n"),
                         kTraining),
            want);
  EXPECT_EQ(listed_pairs(*table("a\tb\r\nc\t\r"), kTraining), want);
  EXPECT_EQ(table("a\rb\tc\r\r\n")->listed(kTraining, 0), (TextPair{"a\rb", "c\r"}));
}

TEST_F(FilePairsTest, BrokenLinesAreNamed) {
  expect_refused("", "holds no pairs");
  expect_refused("\xef\xbb\xbf", "holds no pairs");
  expect_refused("a\tb\nno tab here\n", ", line 2: it has no tab");
  expect_refused("a\tb\tc\td\n", ", line 1: it has 3 tabs");
  expect_refused("a\tb\n\nc\td\n", ", line 2: it is blank");
  expect_refused("a\tb\r\n\r\n", ", line 2: it is blank");
  expect_refused("a\tb\nc\td\n\te\n", ", line 3: the source is empty");
  expect_refused("\t\n", ", line 1: the source is empty");
  expect_refused("a\tb\nc\td\xc3\n", ", line 2: byte 4 of the line (0xc3) is not UTF-8");
  expect_refused("a\t" + std::string(1 << 20, 'b'), ", line 1: it has 1048578 bytes");
}

TEST_F(FilePairsTest, LastLinesAreHeldOut) {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += fmt::format("s{}\tt{}\n", i, i);
  const auto task = table(lines, 0.25);
  ASSERT_EQ(task->count(kTraining), 7);
  ASSERT_EQ(task->count(kHeldOut), 3);
  EXPECT_EQ(task->listed(kHeldOut, 0), (TextPair{"s7", "t7"}));
  for (const TextPair& pair : drawn_pairs(*task, 0, kHeldOut, 50)) EXPECT_GE(pair.source, "s7");
  for (const TextPair& pair : drawn_pairs(*task, 0, kTraining, 50)) EXPECT_LT(pair.source, "s7");
  expect_contains(message_of([&] { table("a\tb\n", 0.1); }), "val_fraction 0.1 leaves none of 1 pairs");
  EXPECT_EQ(table("a\tb\nc\td\n", 0.1)->count(kHeldOut), 1);
}

TEST_F(FilePairsTest, FilesThatCanNotBeRead) {
  expect_contains(message_of([] { make_pair_task("pairs"); }), "pairs: no file was given");
  expect_contains(message_of([&] { make_pair_task("pairs", {.file = folder_.path() / "none"}); }), "none");
  const fs::path source = put("s.txt", "a\n");
  expect_contains(
      message_of([&] { make_pair_task("pairs", {.file = source, .target_file = folder_.path() / "none"}); }), "none");
  // A sparse file of 3 GiB costs nothing to make and would cost much to read.
  const fs::path huge = put("huge", "");
  fs::resize_file(huge, uintmax_t{3} << 30);
  expect_contains(message_of([&] { make_pair_task("pairs", {.file = huge}); }),
                  "has 3221225472 bytes, at most 2147483648 are possible");
}

TEST_F(FilePairsTest, TwoFilesLineForLine) {
  const Pairs want{{"a", "1"}, {"b c", ""}, {"d", "x\ty"}};
  EXPECT_EQ(listed_pairs(*aligned("a\r\nb c\nd", "1\n\r\nx\ty\n"), kTraining), want);
  EXPECT_EQ(aligned("a\nb\n", "1\n2\n")->facts().sha256, table("a\t1\nb\t2\n")->facts().sha256);
  EXPECT_NE(aligned("a\nb\n", "1\n2\n")->facts().sha256, table("a\t1\nb\t3\n")->facts().sha256);
}

TEST_F(FilePairsTest, TwoFilesThatDoNotBelongTogether) {
  const std::string message = message_of([&] { aligned("a\nb\n", "1\n2\n3\n"); });
  expect_contains(message, "s.txt has 2 lines but ");
  expect_contains(message, "t.txt has 3;");
  expect_contains(message_of([&] { aligned("a\n\nb\n", "1\n2\n3\n"); }), "s.txt, line 2: the source is empty");
  expect_contains(message_of([&] { aligned("a\nb\n", "1\n\xff\n"); }), "t.txt, line 2: byte 1 of the line (0xff)");
  expect_contains(message_of([&] { aligned("", ""); }), "holds no pairs");
}

TEST(PairLimits, MoreLinesThanPossible) {
  expect_contains(message_of([] { check_size_of_text("x", std::string(100'000'000, '\n')); }),
                  "x has 100000001 lines, at most 100000000 are possible");
}

}  // namespace
}  // namespace bary
