// SPDX-License-Identifier: Apache-2.0
// The bary program as a shell runs it: pipes, closed readers, full disks, exit codes.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Ran {
  int code = -1;
  std::string out, err;
};

class Program : public ::testing::Test {
 protected:
  Program() {
    std::string name = (fs::temp_directory_path() / "bary-command-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Program() override { fs::remove_all(folder_); }

  std::string read(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // A line of bash in the test's own folder; `bary` there is the program just built.
  Ran shell(const std::string& line) {
    std::string script = "cd '" + folder_.string() + "' && bary() { '" BARY_PROGRAM "' \"$@\"; }; set -o pipefail; { " +
                         line + "; } >out 2>err\n";
    write("line.sh", script);
    int status = std::system(("bash '" + (folder_ / "line.sh").string() + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out"), read("err")};
  }

  fs::path folder_;
};

TEST_F(Program, PipesAreLossless) {
  std::string bytes;
  for (int i = 0; i < 70000; ++i) bytes += static_cast<char>((i * 7919) >> (i % 5));
  write("in", bytes);
  Ran r =
      shell("cat in | bary tokenizer encode - --tokenizer byte | bary tokenizer decode - --tokenizer byte | cmp - in");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out + r.err, "");
}

TEST_F(Program, AReaderThatLeavesIsNoError) {
  write("in", std::string(3000000, 'x'));
  Ran r = shell("bary tokenizer encode in --tokenizer byte | head -c 5");
  EXPECT_EQ(r.out, "120 1");
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.code, 141);
}

TEST_F(Program, AFullDiskIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "SKIPPED: no /dev/full here";
  Ran r = shell("bary --version > /dev/full");
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.err, "bary: cannot write standard output: No space left on device; free some space or write elsewhere\n");
}

TEST_F(Program, ExitCodesAndStreams) {
  Ran help = shell("bary --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("Usage: bary"), std::string::npos);
  EXPECT_EQ(shell("bary").code, 2);
  Ran unknown = shell("bary tokenizer trian");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(unknown.err, "bary: bary tokenizer trian: unknown; did you mean bary tokenizer train?\n");
  EXPECT_EQ(shell("bary tokenizer encode no-such-file --tokenizer byte").code, 2);
}

TEST_F(Program, NoColourAndNoBarsInFilesAndPipes) {
  write("in", std::string(20000, 'a') + " the cat sat on the mat");
  Ran r = shell("bary tokenizer train in --vocab_size 300 --out t.json");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ((r.out + r.err).find('\x1b'), std::string::npos);
  EXPECT_EQ((r.out + r.err).find('\r'), std::string::npos);
}

TEST_F(Program, ClosedStandardStreamsDoNotCrashIt) {
  EXPECT_EQ(shell("bary tokenizer encode - --tokenizer byte <&-").code, 1);
  const Ran closed = shell("bary --version >&-");
  EXPECT_EQ(closed.code, 1);
  EXPECT_NE(closed.err.find("; open it, for example with > FILE"), std::string::npos) << closed.err;
  EXPECT_EQ(shell("bary nonsense 2>&-").code, 2);
  // The file that would get the number of the closed stream holds the tokenizer and nothing else.
  write("in", "the cat sat on the mat");
  EXPECT_EQ(shell("bary tokenizer train in --vocab_size 300 --out a.json; bary tokenizer train in --vocab_size 300 "
                  "--out b.json 2>&-")
                .code,
            0);
  EXPECT_EQ(read("a.json"), read("b.json"));
}

}  // namespace
