// SPDX-License-Identifier: Apache-2.0
#include "bary/report/svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bary/base/error.h"

namespace bary {
namespace {

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

TEST(Svg, TextIsEscaped) { EXPECT_EQ(escaped("<b> & \"c\" 'd'"), "&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;"); }

TEST(Svg, HostileNamesStayText) {
  const Series s[] = {{"</svg><script>", {1, 2}, {3, 4}}};
  const std::string svg = svg_line_plot(s, {"<t>", "\"x\"", "&"}, true);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(count(svg, "</svg>"), 1);
}

TEST(Svg, PointsThatCannotBeDrawnAreLeftOut) {
  const Series s[] = {{"a", {1, 2, 0, 4}, {1, std::nan(""), 3, HUGE_VAL}}};
  const std::string svg = svg_line_plot(s, {.title = "t", .x_label = "x", .y_label = "y", .log_x = true}, false);
  EXPECT_EQ(count(svg, "<circle"), 1);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Svg, LinesOfOneColourHaveOtherDashes) {
  const std::vector<Series> s(10, {"line", {1, 2}, {3, 4}});
  const std::string svg = svg_line_plot(s, {.title = "t", .x_label = "x", .y_label = "y"}, false);
  EXPECT_EQ(count(svg, "class=\"s0\" fill"), 2);
  EXPECT_EQ(count(svg, "class=\"s0\" fill=\"none\" stroke-width=\"2\" stroke-dasharray=\"none\""), 1);
}

TEST(Svg, NothingToDrawIsStillAPicture) {
  const std::string svg = svg_line_plot({}, {.title = "empty", .x_label = "", .y_label = ""}, false);
  EXPECT_EQ(count(svg, "</svg>"), 1);
}

TEST(Svg, AHeatmapHasACellForEachValue) {
  const std::vector<double> v{0, 0.5, 1, std::nan(""), 2, -1};
  const std::string svg = svg_heatmap(v, {"m", "row", "column", {"a", "b"}, {"x", "y", "z"}}, false);
  EXPECT_EQ(count(svg, "<rect"),
            6 + 1 + 9 + 2);  // and the ground, the scale of colours, the white under cells and scale
  EXPECT_THROW(svg_heatmap(v, {"m", "", "", {"a"}, {"x", "y"}}, false), Error);
}

TEST(Svg, TicksAreRoundAndInside) {
  for (auto [low, high] : {std::pair{0.0, 1.0}, {37.2, 61.9}, {-3e-9, 2e-9}, {1e6, 1.1e6}}) {
    const auto ticks = axis_ticks(low, high, 6, false);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 14u);
    for (double t : ticks) {
      EXPECT_GE(t, low - 1e-12 * std::fabs(low));
      EXPECT_LE(t, high * (1 + 1e-12) + 1e-12);
    }
  }
  EXPECT_EQ(axis_ticks(1, 1000, 4, true), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_LE(axis_ticks(1e-30, 1, 6, true).size(), 12u);  // powers of a power of ten
  EXPECT_GE(axis_ticks(1e-30, 1, 6, true).size(), 3u);
  EXPECT_TRUE(axis_ticks(1, 1, 5, false).empty());
}

}  // namespace
}  // namespace bary
