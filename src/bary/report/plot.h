// SPDX-License-Identifier: Apache-2.0
// A line plot for a terminal: braille dots (2 x 4 in a character) for the first series and signs for the others, or
// ASCII signs for all.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace bary {

struct Series {
  std::string name;
  std::vector<double> x, y;  // as many of each; points that are not finite, or not above 0 on a log axis, are left out
};

struct PlotOptions {
  std::string title{}, x_label{};
  int width = 72;   // columns of the whole picture, at least 24
  int height = 14;  // lines of the drawing, at least 3
  bool log_x = false, log_y = false;
  bool unicode = true;
};

// Lines join the points of a series in the order given. Without a single point to draw: a line that says so.
std::string line_plot(std::span<const Series> series, const PlotOptions& options = {});

}  // namespace bary
