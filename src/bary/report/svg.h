// SPDX-License-Identifier: Apache-2.0
// Pictures as SVG: line plots and heatmaps, drawn with classes so that one style sheet serves a light and a dark page.
// Lines differ in colour and in dash, never in colour alone (colours after Okabe and Ito 2008); lines of few points
// have them marked.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/report/plot.h"

namespace bary {

struct SvgPlot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  int width = 640, height = 360;  // of the drawing; the legend below it adds to the height
};
// `standalone` brings its own style sheet (a file of its own); a page has svg_style() once.
std::string svg_line_plot(std::span<const Series> series, const SvgPlot& plot, bool standalone);

struct SvgHeatmap {
  std::string title, row_axis, column_axis;
  std::vector<std::string> row_labels, column_labels;
  double low = 0, high = 1;  // of the colour scale (from pale to dark)
};
std::string svg_heatmap(std::span<const double> values, const SvgHeatmap& map, bool standalone);

std::string svg_style();                     // CSS, light and dark
std::string escaped(std::string_view text);  // for HTML and SVG: & < > " '
// About `count` round numbers over [low, high]: multiples of 1, 2 or 5 times a power of ten. For `log` 1, 2 and 5 times
// powers of ten; where these are more than twice `count`, powers of ten alone, and at last every n-th of them.
std::vector<double> axis_ticks(double low, double high, int count, bool log);

}  // namespace bary
