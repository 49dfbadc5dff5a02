// SPDX-License-Identifier: Apache-2.0
#include "bary/report/plot.h"

#include <algorithm>
#include <cmath>

#include "bary/base/error.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct Axis {
  double low = 0, high = 0;  // in the axis' own scale: of logarithms where it is logarithmic
  bool logarithmic = false;
  bool any = false;

  bool takes(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  double unscaled(double value) const { return logarithmic ? std::pow(10.0, value) : value; }
  void include(double value) {
    value = scaled(value);
    low = any ? std::min(low, value) : value;
    high = any ? std::max(high, value) : value;
    any = true;
  }
  // 0 at the low end, 1 at the high one; half the range is taken first, so that the widest doubles do not overflow.
  double place(double value) const {
    double range = high / 2 - low / 2;
    return range > 0 ? (scaled(value) / 2 - low / 2) / range : 0.5;
  }
  double at(double place) const { return unscaled(low * (1 - place) + high * place); }
};

// Dots of one series; one character holds across x down of them.
class Canvas {
 public:
  Canvas(int columns, int lines, int across, int down)
      : width_(columns * across),
        height_(lines * down),
        across_(across),
        down_(down),
        cells_(static_cast<size_t>(columns) * static_cast<size_t>(lines)),
        columns_(columns) {}

  struct Dot {
    double x = 0, y = 0;
  };
  Dot dot(double x_place, double y_place) const { return {x_place * (width_ - 1), (1 - y_place) * (height_ - 1)}; }
  void line(Dot a, Dot b) {
    int steps = std::max(1, static_cast<int>(std::ceil(std::max(std::abs(b.x - a.x), std::abs(b.y - a.y)))));
    for (int i = 0; i <= steps; ++i) {
      double t = static_cast<double>(i) / steps;
      set(static_cast<int>(std::lround(a.x + (b.x - a.x) * t)), static_cast<int>(std::lround(a.y + (b.y - a.y) * t)));
    }
  }
  unsigned cell(int column, int line) const { return cells_[static_cast<size_t>(line * columns_ + column)]; }

 private:
  void set(int x, int y) {
    // Unicode's order of the eight dots: 1 2 3 7 down the left column, 4 5 6 8 down the right one.
    static constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[static_cast<size_t>(y / down_ * columns_ + x / across_)] |= kBits[y % down_][x % across_];
  }

  int width_, height_, across_, down_;
  std::vector<unsigned> cells_;
  int columns_;
};

std::string braille(unsigned dots) {
  unsigned code = 0x2800 + dots;
  std::string out;
  out += static_cast<char>(0xE0 | (code >> 12));
  out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (code & 0x3F));
  return out;
}

std::string sign_of(size_t series, bool unicode) {
  static constexpr const char* kUnicode[] = {"\u2812", "\u25cf", "+", "x"};
  static constexpr const char* kAscii[] = {"*", "o", "+", "x"};
  return (unicode ? kUnicode : kAscii)[series % 4];
}

Canvas drawn(const Series& series, const Axis& x, const Axis& y, int columns, const PlotOptions& options) {
  // The first series has the fine dots; a sign needs a whole character.
  Canvas canvas = options.unicode ? Canvas(columns, options.height, 2, 4) : Canvas(columns, options.height, 1, 1);
  bool have = false;
  Canvas::Dot last;
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!x.takes(series.x[i]) || !y.takes(series.y[i])) {
      have = false;  // a gap shows where a value was not finite
      continue;
    }
    Canvas::Dot now = canvas.dot(x.place(series.x[i]), y.place(series.y[i]));
    canvas.line(have ? last : now, now);
    last = now;
    have = true;
  }
  return canvas;
}

std::string legend(std::span<const Series> series, bool unicode) {
  std::string out;
  for (size_t i = 0; i < series.size(); ++i) out += (i ? "   " : "") + sign_of(i, unicode) + " " + series[i].name;
  return out;
}

std::string x_axis(const Axis& x, int margin, int columns, const PlotOptions& options) {
  std::string left = number_text(x.at(0)), right = number_text(x.at(1));
  int room = columns - display_width(left) - display_width(right);
  std::string label = fitted(options.x_label + (options.log_x ? " (log)" : ""), std::max(room - 2, 0), options.unicode);
  int before = std::max((room - display_width(label)) / 2, 1),
      after = std::max(room - display_width(label) - before, 1);
  auto spaces = [](int n) { return std::string(static_cast<size_t>(std::max(n, 0)), ' '); };
  std::string corner = options.unicode ? "\u2514" : "+", bar;
  for (int i = 0; i < columns; ++i) bar += options.unicode ? "\u2500" : "-";
  return spaces(margin) + corner + bar + "\n" + spaces(margin + 1) + left + spaces(before) + label + spaces(after) +
         right + "\n";
}

}  // namespace

std::string line_plot(std::span<const Series> series, const PlotOptions& options) {
  BARY_CHECK(options.width >= 24 && options.height >= 3, "plot: {} x {} is too small; at least 24 x 3", options.width,
             options.height);
  Axis x, y;
  x.logarithmic = options.log_x, y.logarithmic = options.log_y;
  for (const auto& one : series) {
    BARY_CHECK(one.x.size() == one.y.size(), "plot: {} has {} x and {} y values; give as many of each", one.name,
               one.x.size(), one.y.size());
    for (size_t i = 0; i < one.x.size(); ++i) {
      if (x.takes(one.x[i]) && y.takes(one.y[i])) x.include(one.x[i]), y.include(one.y[i]);
    }
  }
  std::string heading = options.title + (options.log_y ? " (log)" : "");
  std::string out = heading.empty() ? "" : heading + "\n";
  if (!x.any) return out + "(nothing to draw yet)\n";

  std::vector<std::string> ticks(static_cast<size_t>(options.height));
  for (int line : {0, options.height / 2, options.height - 1}) {
    ticks[static_cast<size_t>(line)] = number_text(y.at(1 - static_cast<double>(line) / (options.height - 1)));
  }
  int margin = 0;
  for (const auto& tick : ticks) margin = std::max(margin, display_width(tick));
  int columns = options.width - margin - 1;
  std::vector<Canvas> canvases;
  for (const auto& one : series) canvases.push_back(drawn(one, x, y, columns, options));
  for (int line = 0; line < options.height; ++line) {
    const std::string& tick = ticks[static_cast<size_t>(line)];
    std::string text = std::string(static_cast<size_t>(margin - display_width(tick)), ' ') + tick;
    text += options.unicode ? (tick.empty() ? "\u2502" : "\u2524") : (tick.empty() ? "|" : "+");
    for (int column = 0; column < columns; ++column) {
      std::string cell = " ";
      for (size_t i = canvases.size(); i-- > 0;) {  // the first series lies on top
        unsigned dots = canvases[i].cell(column, line);
        if (dots) cell = i == 0 && options.unicode ? braille(dots) : sign_of(i, options.unicode);
      }
      text += cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  out += x_axis(x, margin, columns, options);
  if (series.size() > 1)
    out += std::string(static_cast<size_t>(margin + 1), ' ') + legend(series, options.unicode) + "\n";
  return out;
}

}  // namespace bary
