// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus_download.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <optional>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/refusal_test.h"
#include "bary/text/corpus_command.h"

namespace bary {
namespace {
namespace fs = std::filesystem;

TEST(RunCommand, CollectsOutputErrorsAndExitCode) {
  const CommandResult result = run_command({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(run_command({"sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST(RunCommand, ArgumentsAreNotReadByAShell) {
  EXPECT_EQ(run_command({"printf", "%s|", "a b", "$(id)", "; rm *", "'\""}).output, "a b|$(id)|; rm *|'\"|");
}

TEST(RunCommand, StandardInputIsEmptyAndTheFolderIsAsAsked) {
  EXPECT_EQ(run_command({"cat"}).output, "");
  const TemporaryFolder temporary;
  const std::string folder = run_command({"pwd", "-P"}, {.folder = temporary.path()}).output;
  EXPECT_EQ(folder, fs::canonical(temporary.path()).string() + "\n");
}

TEST(RunCommand, LargeOutputOnBothPipesDoesNotBlock) {
  const CommandResult result = run_command({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"});
  EXPECT_EQ(result.output.size(), 300'000u);
  EXPECT_EQ(result.errors.size(), size_t{64} << 10);
}

TEST(RunCommand, WhatMustStopIsStopped) {
  expect_contains(message_of(ErrorKind::system, [] { run_command({"bary-no-such-program"}); }),
                  "cannot run bary-no-such-program");
  expect_contains(message_of(ErrorKind::system,
                             [] {
                               run_command({"cat", "/dev/zero"}, {.most_output = 1000});
                             }),
                  "more than 1000 bytes");
  expect_contains(message_of(ErrorKind::system,
                             [] {
                               run_command({"sleep", "600"}, {.seconds = 0.05});
                             }),
                  "was stopped");
}

TEST(TemporaryFolder, IsGoneAfterwards) {
  fs::path path;
  {
    const TemporaryFolder temporary;
    path = temporary.path();
    write_file_atomic(path / "x", "x");
    fs::create_directory(path / "below");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Download, OnlyHttpsAndReasonsAreGiven) {
  // Nothing listens on port 1 of this machine; no network is needed to be refused.
  const std::string message = message_of(ErrorKind::system, [] { download("https://127.0.0.1:1/x"); });
  expect_contains(message, "https://127.0.0.1:1/x");
  expect_contains(message, "check the network");
  expect_contains(message_of(ErrorKind::system, [] { download("file:///etc/hostname"); }), "file");
  expect_contains(message_of(ErrorKind::system, [] { download("http://127.0.0.1:1/x"); }), "http");
}

// A wheel is a zip with a certain layout; python writes it.
constexpr const char* kMakeWheel = R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + '/barytest-0.0.2-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as w:
    w.writestr('barytest/input.txt', b'First Citizen:\n\x00\xff' * 1000)
    w.writestr('barytest/__init__.py', 'raise SystemExit("the package was run")')
    info = 'barytest-0.0.2.dist-info/'
    w.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: barytest\nVersion: 0.0.2\n')
    w.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    w.writestr(info + 'RECORD', '')
)";

class Wheel : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      ASSERT_EQ(run_command({"python3", "-I", "-c", kMakeWheel, folder_.path().string()}).exit_code, 0);
    } catch (const Error& error) {
      GTEST_SKIP() << "SKIPPED: python3 is needed: " << error.what();
    }
    for (size_t i = 0; i < 1000; ++i) text_ += std::string("First Citizen:\n\0\xff", 17);
  }
  TemporaryFolder folder_;
  std::string text_;
};

TEST_F(Wheel, MemberIsTakenOut) {
  const fs::path wheel = folder_.path() / "barytest-0.0.2-py3-none-any.whl";
  EXPECT_EQ(read_wheel_member(wheel, "barytest/input.txt"), text_);
  expect_contains(message_of(ErrorKind::system, [&] { read_wheel_member(wheel, "barytest/other.txt"); }),
                  "barytest/other.txt");
  WheelOptions small;
  small.most_bytes = 16'999;
  expect_contains(message_of(ErrorKind::system, [&] { read_wheel_member(wheel, "barytest/input.txt", small); }),
                  "too large");
  small.most_bytes = 17'000;
  EXPECT_EQ(read_wheel_member(wheel, "barytest/input.txt", small), text_);
  write_file_atomic(wheel, read_file(wheel).substr(0, 200));
  expect_contains(message_of(ErrorKind::system, [&] { read_wheel_member(wheel, "barytest/input.txt"); }),
                  "not a zip file");
}

class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(Wheel, PipFindsItWithTheUsersOwnSettings) {
  if (run_command({"python3", "-m", "pip", "--version"}).exit_code != 0) GTEST_SKIP() << "SKIPPED: pip is needed";
  const Setting no_index("PIP_NO_INDEX", "1"), links("PIP_FIND_LINKS", folder_.path().string());
  EXPECT_EQ(file_from_wheel("barytest==0.0.2", "barytest/input.txt"), text_);
  const std::string message =
      message_of(ErrorKind::system, [] { file_from_wheel("barytest==0.0.3", "barytest/input.txt"); });
  expect_contains(message, "pip could not get barytest==0.0.3");
  expect_contains(message, "No matching distribution");
}

TEST_F(Wheel, WithoutPythonTheReasonIsSaid) {
  WheelOptions options;
  options.python = "bary-no-such-python";
  expect_contains(message_of(ErrorKind::system, [&] { file_from_wheel("barytest==0.0.2", "x", options); }),
                  "bary-no-such-python");
}

}  // namespace
}  // namespace bary
