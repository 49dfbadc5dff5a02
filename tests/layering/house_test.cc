// SPDX-License-Identifier: Apache-2.0
#include "house.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bary::house {
namespace {

const std::string kSpdx = "// SPDX-License-Identifier: Apache-2.0\n";

// The complaints about a made-up tree; each file gets its SPDX line unless it says otherwise.
std::vector<std::string> complaints(std::vector<SourceFile> files) {
  for (SourceFile& file : files) file.text = kSpdx + file.text;
  return violations(files);
}

// Exactly one complaint, and it holds each of the words.
void expect_one(const std::vector<std::string>& got, const std::vector<std::string>& words) {
  ASSERT_EQ(got.size(), 1u) << ::testing::PrintToString(got);
  for (const std::string& word : words) EXPECT_NE(got[0].find(word), std::string::npos) << got[0];
}

TEST(House, ThisTreeKeepsTheRules) {
  const auto files = read_tree(BARY_SOURCE_DIR);
  size_t sources = 0;
  for (const SourceFile& file : files) sources += file.path.rfind("src/bary/", 0) == 0;
  EXPECT_GT(sources, 10u) << "found no sources under " << BARY_SOURCE_DIR;
  for (const std::string& line : violations(files)) ADD_FAILURE() << line;
}

TEST(House, DownTheLadderIsAllowed) {
  EXPECT_EQ(complaints(
                {{"src/bary/base/error.h", ""},
                 {"src/bary/model/language_model.h", "#include \"bary/base/error.h\"\n"},
                 {"src/bary/text/bpe.h", "#include <vector>\n#include \"bary/base/error.h\"\n"},
                 {"src/bary/train/loop.cc", "#include \"bary/model/language_model.h\"\n#include \"bary/text/bpe.h\"\n"},
                 {"src/bary/bench/step.cc", "#include \"bary/train/loop.h\"\n"},
                 {"src/bary/train/loop.h", ""},
                 {"src/bary/cli/train.cc", "#include \"bary/train/loop.h\"\n"},
                 {"src/bary/program/bench.cc", "#include \"bary/bench/step.h\"\n"},
                 {"src/bary/bench/step.h", ""}}),
            std::vector<std::string>{});
}

TEST(House, UpTheLadderIsRefused) {
  expect_one(complaints({{"src/bary/base/error.h", "#include \"bary/nn/linear.h\"\n"}, {"src/bary/nn/linear.h", ""}}),
             {"src/bary/base/error.h", "nn does not stand below base"});
  expect_one(complaints({{"src/bary/bench/a.cc", "#include \"bary/cli/b.h\"\n"}, {"src/bary/cli/b.h", ""}}),
             {"cli does not stand below bench"});
  expect_one(complaints({{"src/bary/cli/a.cc", "#include \"bary/bench/b.h\"\n"}, {"src/bary/bench/b.h", ""}}),
             {"bench does not stand below cli"});
}

TEST(House, AcrossTheLadderIsRefused) {
  expect_one(
      complaints({{"src/bary/text/bpe.cc", "  #  include <bary/tensor/tensor.h>\n"}, {"src/bary/tensor/tensor.h", ""}}),
      {"tensor does not stand below text"});
  expect_one(complaints({{"src/bary/train/a.cc", "#include \"bary/generate/b.h\"\n"}, {"src/bary/generate/b.h", ""}}),
             {"generate does not stand below train"});
  // a test obeys like the code beside it
  expect_one(complaints({{"src/bary/io/a_test.cc", "#include \"bary/nn/b.h\"\n"}, {"src/bary/nn/b.h", ""}}),
             {"nn does not stand below io"});
}

TEST(House, CirclesOfFoldersAndOfFilesAreFound) {
  const auto folders = complaints({{"src/bary/train/a.h", "#include \"bary/generate/b.h\"\n"},
                                   {"src/bary/generate/b.h", "#include \"bary/train/c.h\"\n"},
                                   {"src/bary/train/c.h", ""}});
  ASSERT_EQ(folders.size(), 3u);  // two edges that may not be, and the circle they make
  EXPECT_NE(folders[2].find("generate -> train -> generate: folders include each other"), std::string::npos);
  expect_one(complaints({{"src/bary/nn/a.h", "#include \"bary/nn/b.h\"\n"},
                         {"src/bary/nn/b.h", "#include \"bary/nn/c.h\"\n"},
                         {"src/bary/nn/c.h", "#include \"bary/nn/a.h\"\n"}}),
             {"a.h -> src/bary/nn/b.h -> src/bary/nn/c.h -> src/bary/nn/a.h", "circle"});
}

TEST(House, UnknownFoldersAndMissingFilesAreNamed) {
  expect_one(complaints({{"src/bary/attic/a.h", ""}}), {"attic has no floor"});
  expect_one(complaints({{"src/bary/nn/a.cc", "#include \"bary/nn/gone.h\"\n"}}), {"bary/nn/gone.h", "not exist"});
}

TEST(House, FilesHaveASizeAndAName) {
  EXPECT_TRUE(complaints({{"src/bary/nn/a.cc", std::string(499, '\n')}}).empty());
  expect_one(complaints({{"src/bary/nn/a.cc", std::string(500, '\n')}}), {"501 lines"});
  expect_one(complaints({{"src/bary/base/string_utils.h", ""}}), {"says nothing"});
  expect_one(complaints({{"tests/common/a.py", ""}}), {"says nothing"});
  expect_one(complaints({{"src/bary/nn/misc.cc", ""}}), {"says nothing"});
  EXPECT_TRUE(complaints({{"src/bary/text/most_common_pair.cc", ""}, {"src/bary/nn/commonplace.cc", ""}}).empty());
}

TEST(House, EveryFileSaysItsLicence) {
  expect_one(violations({{"src/bary/nn/a.cc", "int a;\nint b;\n" + kSpdx}}), {"no SPDX"});
  expect_one(violations({{"tools/a.py", ""}}), {"no SPDX"});
  EXPECT_TRUE(violations({{"tools/a.py", "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n"}}).empty());
}

TEST(House, SimdWordsStayInTheKernels) {
  expect_one(complaints({{"src/bary/nn/a.cc", "#include <hwy/highway.h>\n"}}), {"a.cc:2", "kernel"});
  expect_one(complaints({{"src/bary/tensor/a.h", "HWY_ATTR void f();\n"}}), {"HWY_ATTR"});
  expect_one(complaints({{"src/bary/tensor/a_test.cc", "__m512 v = _mm512_setzero_ps();\n"}}), {"__m512"});
  EXPECT_TRUE(complaints({{"src/bary/base/a.cc", "saved_ = _mm_getcsr();\n"}}).empty());
  EXPECT_TRUE(complaints({{"src/bary/kernel/a.cc", "#include <hwy/highway.h>\nHWY_EXPORT(f);\n"}}).empty());
  EXPECT_TRUE(complaints({{"src/bary/nn/a.cc", "int a;  // the kernel's HWY_EXPORT\n/* hwy:: */\n"}}).empty());
}

TEST(House, FastMathIsRefused) {
  expect_one(complaints({{"src/bary/kernel/CMakeLists.txt", "set(FLAGS -O3\n -ffast-math)\n"}}), {":3", "-ffast-math"});
  expect_one(complaints({{"CMakePresets.json", "\"-Ofast\""}}), {"-Ofast"});
  expect_one(complaints({{"cmake/deps.cmake", "-ffp-contract=fast"}}), {"same bits"});
  EXPECT_TRUE(complaints({{"cmake/deps.cmake", "-ffp-contract=off"}}).empty());
  expect_one(complaints({{"src/bary/kernel/a.cc", "#pragma GCC optimize(\"fast-math\")\n"}}), {"pragma"});
}

TEST(House, TheLibraryNeitherPrintsNorRollsItsOwnDice) {
  expect_one(complaints({{"src/bary/train/a.cc", "void f() { std::cout << 1; }\n"}}), {"never prints"});
  expect_one(complaints({{"src/bary/io/a.cc", "void f() { std::exit(2); }\n"}}), {"exits"});
  expect_one(complaints({{"src/bary/nn/a.cc", "std::normal_distribution<float> d;\n"}}), {"RandomStream"});
  EXPECT_TRUE(complaints({{"src/bary/cli/a.cc", "std::cout << 1;\n"},
                          {"src/bary/io/b.cc", "std::snprintf(b, n, \"exit(\"); on_exit_(); fmt::format(\"\");\n"},
                          {"src/bary/io/b_test.cc", "std::mt19937 r; std::cout << r();\n"}})
                  .empty());
}

TEST(House, CommentsAreTakenOutAndLiteralsKeptOrEmptied) {
  const auto keep = [](const std::string& code) { return without_comments(code, Literals::keep); };
  const auto empty = [](const std::string& code) { return without_comments(code, Literals::empty); };
  EXPECT_EQ(keep("a // b\nc /* d\ne */ f"), "a \nc \n f");
  EXPECT_EQ(keep("x = \"// no\"; // yes"), "x = \"// no\"; ");
  EXPECT_EQ(keep("c = '\"'; // yes\n1'000 /*q*/ 2"), "c = '\"'; \n1'000  2");
  EXPECT_EQ(keep("\"a\\\"// b\" // c"), "\"a\\\"// b\" ");
  EXPECT_EQ(keep("/* a */b/"), "b/");
  EXPECT_EQ(empty("f(\"exit(1)\", 'x', \"\\\"\"); g();"), "f(\"\", '', \"\"); g();");
  EXPECT_EQ(empty("\"open\nnext"), "\"\nnext");
  EXPECT_EQ(keep("\"ends in a backslash\\"), "\"ends in a backslash\\");
}

}  // namespace
}  // namespace bary::house
