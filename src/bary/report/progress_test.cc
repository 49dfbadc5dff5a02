// SPDX-License-Identifier: Apache-2.0
#include "bary/report/progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bary/report/format.h"

namespace bary {
namespace {

const Progress kHalf{
    .step = 1260, .steps = 3000, .tokens = 999424, .seconds = 48.30, .loss = 2.34561, .peak_share = 0.61};

TEST(Progress, TokensPerSecond) {
  EXPECT_EQ(std::llround(tokens_per_second(999424, 48.30)), 20692);
  EXPECT_EQ(tokens_per_second(5, 0), 0);
}

TEST(Progress, AResumedRunCountsOnlyItsOwnWork) {
  Progress resumed{.step = 1010, .steps = 1100, .first_step = 1000, .tokens = 1000, .seconds = 10};
  EXPECT_EQ(seconds_left(resumed), 90);
  resumed.step = 1000;
  EXPECT_EQ(seconds_left(resumed), std::nullopt);
}

TEST(Progress, Text) {
  EXPECT_EQ(progress_text(kHalf), " 42%  step 1,260/3,000  loss 2.3456  20.7k tok/s  61.0% of peak  1m 07s left");
  EXPECT_EQ(progress_text({.step = 0, .steps = 10}), "  0%  step 0/10");
  EXPECT_EQ(progress_text({.step = 0, .steps = 0}), "100%  step 0/0  in 0.00s");
  EXPECT_EQ(progress_text({.step = 10, .steps = 10, .tokens = 20, .seconds = 65}),
            "100%  step 10/10  0.31 tok/s  in 1m 05s");
  EXPECT_EQ(progress_text({.step = 9999, .steps = 10000}).substr(0, 4), " 99%");
  EXPECT_NE(progress_text({.step = 1, .steps = 2, .loss = std::nan("")}).find("loss nan"), std::string::npos);
}

TEST(Progress, LineFitsEveryTerminal) {
  for (int columns = 1; columns < 140; ++columns) {
    for (bool unicode : {true, false}) EXPECT_LE(display_width(progress_line(kHalf, columns, unicode)), columns);
  }
  std::string line = progress_line({.step = 5, .steps = 10}, 200, false);
  EXPECT_EQ(line, "[===========           ]  50%  step 5/10");
  EXPECT_EQ(progress_line({.step = 1, .steps = 2}, 24, true), "████▌░░░░  50%  step 1/2");
}

TEST(ProgressView, TerminalRedrawsAtMostTenTimesASecond) {
  ProgressView view(true, 80, false, 100);
  Progress p{.step = 1, .steps = 100, .seconds = 1};
  std::string first = view.update(p);
  EXPECT_TRUE(first.starts_with("\r") && first.ends_with("\x1b[K"));
  p.step = 2, p.seconds = 1.05;
  EXPECT_EQ(view.update(p), "");
  p.step = 3, p.seconds = 1.11;
  EXPECT_NE(view.update(p), "");
  EXPECT_EQ(view.clear(), "\r\x1b[K");
  EXPECT_EQ(view.clear(), "");
  p.seconds = 1.12;
  EXPECT_NE(view.update(p), "") << "redrawn at once after other lines";
  p.step = 100, p.seconds = 1.13;
  EXPECT_TRUE(view.update(p).ends_with("\n"));
  EXPECT_EQ(view.clear(), "");
}

TEST(ProgressView, PlainLinesEveryN) {
  ProgressView view(false, 80, true, 10);
  int printed = 0;
  for (int64_t step = 1; step <= 25; ++step) {
    std::string line = view.update({.step = step, .steps = 25, .seconds = 1e-3 * static_cast<double>(step)});
    EXPECT_EQ(line.find('\r'), std::string::npos);
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
    printed += line.ends_with("\n");
  }
  EXPECT_EQ(printed, 3);  // 10, 20 and the last
  EXPECT_EQ(view.clear(), "");
  EXPECT_EQ(ProgressView(false, 80, true, 0).update({.step = 1, .steps = 2}), "");
}

}  // namespace
}  // namespace bary
