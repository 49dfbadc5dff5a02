// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/run.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>

#include "bary/base/error.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/test_io_test.h"
#include "bary/kernel/target.h"

namespace bary {
namespace {

std::vector<Command> sample() {
  auto echo = [](std::span<const std::string> args, Io& io) {
    for (const auto& arg : args) io.print("<" + arg + ">");
    return kExitOk;
  };
  auto thrower = [](std::span<const std::string> args, Io& io) -> int {
    io.print("before");
    if (args[0] == "input") fail("x.txt: bad\nvery bad");
    if (args[0] == "system") fail(ErrorKind::system, "disk full");
    if (args[0] == "numeric") fail(ErrorKind::numeric, "step 5: the loss is nan");
    if (args[0] == "memory") throw std::bad_alloc();
    if (args[0] == "logic") throw std::logic_error("boo");
    if (args[0] == "number") throw 5;
    if (args[0] == "pipe") throw OutputClosed{EPIPE};
    if (args[0] == "full") throw OutputClosed{ENOSPC};
    return kExitInterrupted;
  };
  return {{"train",
           "train a model",
           "[FILE]",
           {{"bary train a.txt", "trains"}},
           [] { return std::string("KEYS\n"); },
           echo},
          {"tokenizer encode", "text to ids", "FILE", {{"bary tokenizer encode a.txt", "ids"}}, nullptr, echo},
          {"tokenizer decode", "ids to text", "FILE", {}, nullptr, echo},
          {"fail", "fails", "", {}, nullptr, thrower}};
}

Ran ran(const std::vector<std::string>& args) {
  auto commands = sample();
  return ran(commands, args);
}

TEST(Run, PassesArgumentsOnUntouched) {
  EXPECT_EQ(ran({"train", "--a=b=c", "--", "-x", "train"}).out, "<--a=b=c><--><-x><train>");
  EXPECT_EQ(ran({"tokenizer", "encode", "decode"}).out, "<decode>");
  EXPECT_EQ(ran({"train", "--", "--help"}).out, "<--><--help>");
  EXPECT_EQ(ran({"train", "--start=--help"}).out, "<--start=--help>");
}

TEST(Run, HelpGoesToStandardOutputMistakesToStandardError) {
  for (const auto& args : std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"help"}}) {
    Ran r = ran(args);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.err, "");
    for (const char* word : {"train", "tokenizer encode", "bary train a.txt", "Exit codes"}) {
      EXPECT_NE(r.out.find(word), std::string::npos) << word;
    }
  }
  Ran none = ran({});
  EXPECT_EQ(none.code, kExitInput);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find("Usage"), std::string::npos);
}

TEST(Run, HelpOfOneCommand) {
  for (const auto& args :
       std::vector<std::vector<std::string>>{{"train", "--help"}, {"help", "train"}, {"train", "x", "-h"}}) {
    Ran r = ran(args);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(r.out,
              "bary train: train a model\n\nUsage: bary train [FILE]\n\nKEYS\n\nExamples:\n  bary train a.txt\n      "
              "trains\n");
  }
  EXPECT_NE(ran({"help", "tokenizer", "encode"}).out.find("Usage: bary tokenizer encode FILE"), std::string::npos);
  EXPECT_NE(ran({"tokenizer", "--help"}).out.find("tokenizer decode"), std::string::npos);
  EXPECT_EQ(ran({"tokenizer", "--help"}).out.find("bary train"), std::string::npos);
  EXPECT_EQ(ran({"tokenizer"}).code, kExitInput);
}

TEST(Run, UnknownCommandsComeWithTheNearest) {
  EXPECT_EQ(ran({"trian"}).err, "bary: bary trian: unknown; did you mean bary train?\n");
  EXPECT_EQ(ran({"tokenizer", "encod"}).err,
            "bary: bary tokenizer encod: unknown; did you mean bary tokenizer encode?\n");
  EXPECT_EQ(ran({"tokeniser", "encode"}).err, "bary: bary tokeniser: unknown; did you mean bary tokenizer?\n");
  EXPECT_EQ(ran({"zzzzzz"}).err, "bary: bary zzzzzz: unknown; the commands are train, tokenizer or fail\n");
  EXPECT_EQ(ran({"help", "zzzzzz"}).code, kExitInput);
  EXPECT_EQ(ran({""}).code, kExitInput);
  EXPECT_EQ(ran({"--seed=1"}).code, kExitInput);
  EXPECT_EQ(ran({"\x1b[31m"}).err.find('\x1b'), std::string::npos);
}

TEST(Run, ExitCodesAndOneLine) {
  auto check = [](const char* what, int code, const std::string& err) {
    Ran r = ran({"fail", what});
    EXPECT_EQ(r.code, code) << what;
    EXPECT_EQ(r.err, err) << what;
    EXPECT_EQ(r.out, "before");
  };
  check("input", kExitInput, "bary: x.txt: bad very bad\n");
  check("system", kExitSystem, "bary: disk full\n");
  check("numeric", kExitNumeric, "bary: step 5: the loss is nan\n");
  check("memory", kExitSystem, "bary: out of memory; use a smaller model, batch or text\n");
  check("pipe", kExitPipe, "");
  check("full", kExitSystem,
        "bary: cannot write standard output: No space left on device; free some space or write elsewhere\n");
  check("else", kExitInterrupted, "");
  EXPECT_EQ(ran({"fail", "logic"}).code, kExitSystem);
  EXPECT_NE(ran({"fail", "logic"}).err.find("boo"), std::string::npos);
  EXPECT_EQ(ran({"fail", "number"}).code, kExitSystem);
}

TEST(Run, AStandardOutputThatFailsIsNoticed) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  Io io{out, err, [] { return std::string(); }};
  auto commands = sample();
  std::vector<std::string> args = {"train", "x"};
  EXPECT_NE(run_with(commands, args, io), kExitOk);
}

TEST(Run, Version) {
  Ran r = ran({"--version"});
  EXPECT_NE(r.out.find("kernels run on " + kernel::active_isa()), std::string::npos) << r.out;
  EXPECT_EQ(r.code, 0);
  EXPECT_TRUE(r.out.starts_with("bary 0.") || r.out.starts_with("bary 1.")) << r.out;
  EXPECT_NE(r.out.find("compiled by "), std::string::npos);
}

TEST(Interrupt, TheFirstSignalOnlySetsTheFlag) {
  {
    InterruptGuard guard;
    EXPECT_FALSE(interrupted());
    ::raise(SIGINT);
    EXPECT_TRUE(interrupted());
    EXPECT_EXIT(::raise(SIGINT), ::testing::ExitedWithCode(130), "");
  }
  InterruptGuard again;
  EXPECT_FALSE(interrupted());
  ::raise(SIGTERM);
  EXPECT_TRUE(interrupted());
}

}  // namespace
}  // namespace bary
