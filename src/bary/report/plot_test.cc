// SPDX-License-Identifier: Apache-2.0
#include "bary/report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bary/base/error.h"
#include "bary/report/format.h"

namespace bary {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t from = 0; from < text.size();) {
    size_t to = text.find('\n', from);
    lines.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

TEST(Plot, AsciiDiagonal) {
  Series line{"loss", {0, 1, 2}, {0, 1, 2}};
  PlotOptions options{.title = "loss", .x_label = "step", .width = 24, .height = 3, .unicode = false};
  EXPECT_EQ(line_plot({&line, 1}, options),
            "loss\n"
            "2+                ******\n"
            "1+      **********\n"
            "0+******\n"
            " +----------------------\n"
            "  0        step        2\n");
}

TEST(Plot, BrailleCornersAreTheExtremes) {
  Series line{"loss", {0, 1}, {0, 2}};
  auto lines = lines_of(line_plot({&line, 1}, {.width = 24, .height = 3}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].starts_with("2\u2524") && lines[0].ends_with("\u2809")) << lines[0];
  EXPECT_TRUE(lines[2].starts_with("0\u2524\u28c0")) << lines[2];
}

TEST(Plot, EveryLineFits) {
  Series train{"train", {}, {}}, val{"val", {}, {}};
  for (int i = 0; i < 500; ++i) train.x.push_back(i), train.y.push_back(7 * std::exp(-i / 90.0) + 1.5);
  for (int i = 0; i < 500; i += 50) val.x.push_back(i), val.y.push_back(7 * std::exp(-i / 90.0) + 1.9);
  for (bool unicode : {true, false}) {
    for (bool log : {true, false}) {
      for (int width : {24, 72, 200}) {
        std::vector<Series> both = {train, val};
        std::string text = line_plot(both, {.title = "t",
                                            .x_label = "a label that is far too long for so small a plot",
                                            .width = width,
                                            .log_x = log,
                                            .log_y = log,
                                            .unicode = unicode});
        for (const auto& line : lines_of(text)) EXPECT_LE(display_width(line), width) << text;
        EXPECT_NE(text.find(unicode ? "\u25cf val" : "o val"), std::string::npos);
      }
    }
  }
}

TEST(Plot, WhatCannotBeDrawnIsLeftOut) {
  Series holes{"a", {0, 1, 2, 3}, {1, std::nan(""), kInfinity, 1}};
  std::string text = line_plot({&holes, 1}, {.width = 24, .height = 3, .unicode = false});
  EXPECT_EQ(std::count(text.begin(), text.end(), '*'), 2) << "a gap, no line across it\n" << text;
  Series below{"a", {-1, 0, 1}, {-1, 0, -3}};
  EXPECT_EQ(line_plot({&below, 1}, {.title = "t", .log_y = true}), "t (log)\n(nothing to draw yet)\n");
  EXPECT_EQ(line_plot({}, {}), "(nothing to draw yet)\n");
  Series empty{"a", {}, {}};
  EXPECT_EQ(line_plot({&empty, 1}, {}), "(nothing to draw yet)\n");
}

TEST(Plot, OnePointConstantsAndHugeRanges) {
  Series point{"a", {5}, {2}};
  std::string text = line_plot({&point, 1}, {.width = 24, .height = 3, .unicode = false});
  EXPECT_EQ(std::count(text.begin(), text.end(), '*'), 1);
  Series huge{"a", {0, 1}, {-1.7e308, 1.7e308}};
  text = line_plot({&huge, 1}, {.width = 40, .height = 5, .unicode = false});
  EXPECT_GT(std::count(text.begin(), text.end(), '*'), 5) << text;
}

TEST(Plot, Refusals) {
  Series uneven{"a", {1, 2}, {1}};
  EXPECT_THROW(line_plot({&uneven, 1}, {}), Error);
  EXPECT_THROW(line_plot({}, {.width = 10}), Error);
  EXPECT_THROW(line_plot({}, {.height = 1}), Error);
}

}  // namespace
}  // namespace bary
