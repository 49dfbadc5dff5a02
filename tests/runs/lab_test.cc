// SPDX-License-Identifier: Apache-2.0
// bary lab as a person runs it: refusals, interruptions, and what is kept.
#include <gtest/gtest.h>

#include "program.h"

namespace bary::runs_test {
namespace {

class Lab : public ::testing::Test {
 protected:
  Ran lab(std::vector<std::string> args) {
    args.insert(args.begin(), "lab");
    return bary(work_.path(), args);
  }
  void refused(const std::vector<std::string>& args, const std::vector<std::string>& names) {
    const Ran r = lab(args);
    EXPECT_EQ(r.code, 2) << r.err;
    for (const std::string& n : names)
      EXPECT_NE(r.err.find(n), std::string::npos) << "wanted \"" << n << "\" in: " << r.err;
  }
  Workplace work_;
};

TEST_F(Lab, AnUnknownExperimentComesWithTheNearest) {
  refused({"run", "scroes"}, {"scroes", "scores"});
  refused({"list", "scroes"}, {"scroes", "scores"});
}
TEST_F(Lab, NothingNamed) { refused({"run"}, {"all", "lab list"}); }
TEST_F(Lab, NoSeeds) { refused({"run", "average", "--seeds", "0"}, {"seeds", "0"}); }
TEST_F(Lab, ReportBeforeARun) { refused({"report"}, {"results.json", "lab run"}); }
TEST_F(Lab, OutDirThatIsAFile) {
  work_.write("file", "x");
  refused({"run", "average", "--out_dir", "file/out"}, {"file"});
}

TEST_F(Lab, ACorpusTooSmallForItsWindowsIsRefusedAndFinishedRowsStay) {
  work_.write("short.txt", "to be or not to be");
  refused({"run", "average", "ladder", "--budget", "smoke", "--corpus", "short.txt", "--out_dir", "out"},
          {"tokens", "129"});
  EXPECT_NE(work_.read("out/results.json").find("\"order\""), std::string::npos);
}

TEST_F(Lab, AHeldOutPartTooSmallIsRefusedBeforeTheTraining) {
  std::string text;
  for (int i = 0; text.size() < 4000; ++i) text += std::to_string(i * 7919) + " ";
  work_.write("short.txt", text);
  refused({"run", "positions", "--budget", "smoke", "--corpus", "short.txt", "--out_dir", "out"},
          {"held-out part", "windows of 256", "257"});
}

TEST_F(Lab, RowsOfAnotherVersionAreRefusedWithTheReason) {
  ASSERT_EQ(lab({"run", "average", "--out_dir", "out"}).code, 0);
  std::string text = work_.read("out/results.json");
  text.replace(text.find("\"format\": 2"), 11, "\"format\": 9");
  work_.write("out/results.json", text);
  refused({"run", "average", "--out_dir", "out"}, {"format 9", "format 2", "--out_dir"});
  refused({"report", "--out_dir", "out"}, {"format 9"});
  EXPECT_EQ(work_.read("out/results.json"), text);
}

TEST_F(Lab, AnotherBudgetIsNotMixedIn) {
  ASSERT_EQ(lab({"run", "average", "--out_dir", "out"}).code, 0);
  refused({"run", "average", "--budget", "smoke", "--out_dir", "out"}, {"quick", "smoke", "--out_dir"});
  refused({"report", "--budget", "chapter", "--out_dir", "out"}, {"--budget chapter", "--budget quick", "out"});
}

TEST_F(Lab, SlowAnInterruptedRunGoesOnWhereItStopped) {
  const Ran first = shell(work_.path(),
                          "$PROGRAM lab run scores --out_dir out 2> first.txt & p=$!; "
                          "until grep -q 'd 16' first.txt; do sleep 0.01; done; kill -INT $p; wait $p; echo code $?");
  EXPECT_NE(first.out.find("code 130"), std::string::npos) << first.out << first.err;
  EXPECT_NE(work_.read("first.txt").find("go"), std::string::npos);
  EXPECT_NE(work_.read("out/results.json").find("\"d 16\""), std::string::npos);
  const Ran second = lab({"run", "scores", "--out_dir", "out"});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.err.find("scores d 16"), std::string::npos) << second.err;  // not measured again
  EXPECT_NE(second.err.find("scores d 1024"), std::string::npos) << second.err;
}

TEST_F(Lab, TwoRunsDoNotWriteIntoOneFolder) {
  const Ran r = shell(work_.path(),
                      "$PROGRAM lab run scores --out_dir out > /dev/null 2> first.txt & p=$!; "
                      "until grep -q 'd 4' first.txt; do sleep 0.01; done; "
                      "bary lab run average --out_dir out; echo code $?; kill -INT $p; wait $p");
  EXPECT_NE(r.out.find("code 2"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("another process"), std::string::npos) << r.err;
}

TEST_F(Lab, TheReportNeedsNoNetworkAndNoRun) {
  ASSERT_EQ(lab({"run", "average", "parity", "--out_dir", "out"}).code, 0);
  ASSERT_EQ(lab({"report", "--out_dir", "out"}).code, 0);
  const std::string page = work_.read("out/lab.html");
  for (const char* part : {"src=", "<script", "@import", "url(", "<link"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("lang=\"en\""), std::string::npos);
  EXPECT_NE(work_.read("out/lab.md").find("](plots/average-1.svg)"), std::string::npos);
  EXPECT_NE(work_.read("out/plots/average-1.svg").find("</svg>"), std::string::npos);
  EXPECT_NE(work_.read("out/lab.csv").find("average,A5,"), std::string::npos);
}

TEST_F(Lab, WithoutATerminalThereAreNoControlCharacters) {
  const Ran r = lab({"run", "average", "--out_dir", "out"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(r.err.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace bary::runs_test
