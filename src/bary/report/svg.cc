// SPDX-License-Identifier: Apache-2.0
#include "bary/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bary/base/error.h"
#include "bary/report/format.h"

namespace bary {
namespace {

constexpr int kColours = 8;
constexpr const char* kLight[kColours] = {"#0072b2", "#d55e00", "#007a5a", "#a8437f",
                                          "#8a6d00", "#3b8ec2", "#b00020", "#555555"};
constexpr const char* kDark[kColours] = {"#56b4e9", "#ff8a50", "#3ddbb0", "#e79cc9",
                                         "#f0e442", "#9ad0f0", "#ff6b7a", "#c0c0c0"};
constexpr const char* kDashes[kColours] = {"none", "6 3", "2 2", "8 3 2 3", "14 4", "2 6", "12 3 2 3 2 3", "5 7"};

// Colour and dash come round together every eight lines, and each time the dashes have moved on by one.
const char* dash_of(size_t line) { return kDashes[(line + line / kColours) % kColours]; }

struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;  // in pixels
  double at(double v) const {
    const double share =
        log ? (std::log(v) - std::log(low)) / (std::log(high) - std::log(low)) : (v - low) / (high - low);
    return from + share * (to - from);
  }
  bool shows(double v) const { return std::isfinite(v) && (!log || v > 0); }
};

Axis axis_over(std::span<const Series> series, bool of_x, bool log) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series& s : series) {
    for (size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
      const double v = of_x ? s.x[i] : s.y[i];
      if (!std::isfinite(v) || (log && v <= 0)) continue;
      low = std::min(low, v), high = std::max(high, v);
    }
  }
  if (low > high) low = log ? 1 : 0, high = log ? 10 : 1;
  if (low == high) high = log ? low * 2 : low + std::max(1.0, std::fabs(low)) * 0.1;
  if (!of_x && !log) {
    const double margin = 0.04 * (high - low);
    low = low >= 0 && low < 0.25 * high ? 0 : low - margin;  // near zero: show zero
    high += margin;
  }
  return {low, high, log, 0, 1};
}

std::string polyline(const Series& s, const Axis& x, const Axis& y, size_t number) {
  std::string points, marks;
  const size_t n = std::min(s.x.size(), s.y.size());
  for (size_t i = 0; i < n; ++i) {
    if (!x.shows(s.x[i]) || !y.shows(s.y[i])) continue;
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x.at(s.x[i]), y.at(s.y[i]));
    if (n <= 24)
      marks += fmt::format("<circle class=\"f{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", number % kColours,
                           x.at(s.x[i]), y.at(s.y[i]));
  }
  return fmt::format(
      "<polyline class=\"s{}\" fill=\"none\" stroke-width=\"2\" stroke-dasharray=\"{}\" points=\"{}\"/>{}\n",
      number % kColours, dash_of(number), points, marks);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text, std::string_view extra = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, extra,
                     escaped(text));
}

std::string opened(int width, int height, const std::string& title, bool standalone) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"{}\" "
      "class=\"picture\">\n{}<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
      width, height, width, escaped(title), standalone ? "<style>" + svg_style() + "</style>\n" : "");
}

std::string shaded(double x, double y, int width, int height, double share) {
  const auto mix = [&](double from, double to) { return static_cast<int>(from + share * (to - from)); };
  return fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" fill=\"#{:02x}{:02x}{:02x}\"/>", x, y,
                     width, height, mix(236, 8), mix(240, 48), mix(246, 107));
}

std::string colour_scale(double x, double y, double low, double high) {
  const std::string least = number_text(low, 3);
  std::string out = text_at(x, y + 11, "start", least);
  x += 8 + 8 * display_width(least);
  out += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"110\" height=\"14\" fill=\"#fff\"/>", x - 1, y - 1);
  for (int i = 0; i <= 8; ++i, x += 12) out += shaded(x, y, 12, 12, i / 8.0);
  return out + "\n" + text_at(x + 8, y + 11, "start", number_text(high, 3));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::vector<double> axis_ticks(double low, double high, int count, bool log) {
  std::vector<double> ticks;
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) return ticks;
  if (log) {
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * 1.0001; power *= 10)
      for (double m : {1.0, 2.0, 5.0})
        if (m * power >= low * 0.9999 && m * power <= high * 1.0001) ticks.push_back(m * power);
    if (std::ssize(ticks) > 2 * count)
      std::erase_if(ticks, [](double t) { return std::fabs(std::log10(t) - std::round(std::log10(t))) > 1e-9; });
    if (const auto each =
            static_cast<int64_t>((ticks.size() + static_cast<size_t>(count) - 1) / static_cast<size_t>(count));
        std::ssize(ticks) > 2 * count)
      std::erase_if(ticks, [&](double t) { return std::llround(std::log10(t)) % each != 0; });
    return ticks;
  }
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw))), m = raw / power;
  const double step = power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
  for (double i = std::ceil(low / step); i * step <= high * (1 + 1e-12) + 1e-300; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string svg_style() {
  std::string light, dark;
  for (int i = 0; i < kColours; ++i) {
    light += fmt::format(".s{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, kLight[i]);
    dark += fmt::format(".s{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, kDark[i]);
  }
  return ".picture{max-width:100%;height:auto;font:12px sans-serif}.picture text{fill:#222}.ground{fill:#fff}"
         ".grid{stroke:#ddd}.axis{stroke:#666}.picture .on{fill:#fff}" +
         light +
         "@media(prefers-color-scheme:dark){.picture "
         "text{fill:#ddd}.ground{fill:#16181c}.grid{stroke:#333}.axis{stroke:#"
         "999}.picture .on{fill:#fff}.picture .off{fill:#000}" +
         dark + "}.picture .off{fill:#000}";
}

std::string svg_line_plot(std::span<const Series> series, const SvgPlot& p, bool standalone) {
  const int left = 64, right = 16, top = 30, bottom = 44, line = 18;
  const int height = p.height + line * static_cast<int>(series.size()) + 8;
  Axis x = axis_over(series, true, p.log_x), y = axis_over(series, false, p.log_y);
  x.from = left, x.to = p.width - right;
  y.from = p.height - bottom, y.to = top;
  std::string out = opened(p.width, height, p.title, standalone);
  out += text_at(left, 18, "start", p.title, " font-weight=\"bold\"");
  for (double t : axis_ticks(y.low, y.high, 6, y.log)) {
    out += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", left,
                       p.width - right, y.at(t), y.at(t));
    out += text_at(left - 6, y.at(t) + 4, "end", number_text(t, 4));
  }
  for (double t : axis_ticks(x.low, x.high, 8, x.log)) {
    out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>\n", x.at(t),
                       p.height - bottom, p.height - bottom + 5);
    out += text_at(x.at(t), p.height - bottom + 18, "middle", number_text(t, 6));
  }
  out += fmt::format("<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>\n", left, p.width - right,
                     p.height - bottom);
  out += text_at((left + p.width - right) / 2.0, p.height - 8, "middle", p.x_label);
  out += text_at(14, (top + p.height - bottom) / 2.0, "middle", p.y_label,
                 fmt::format(" transform=\"rotate(-90 14 {:.1f})\"", (top + p.height - bottom) / 2.0));
  for (size_t i = 0; i < series.size(); ++i) {
    out += polyline(series[i], x, y, i);
    const double at = p.height + 6 + line * static_cast<double>(i);
    out += fmt::format(
        "<line class=\"s{}\" stroke-width=\"2\" stroke-dasharray=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" "
        "y2=\"{:.1f}\"/>",
        i % kColours, dash_of(i), left, left + 28, at, at);
    out += text_at(left + 36, at + 4, "start", series[i].name);
  }
  return out + "</svg>\n";
}

std::string svg_heatmap(std::span<const double> values, const SvgHeatmap& m, bool standalone) {
  const int64_t rows = std::ssize(m.row_labels), columns = std::ssize(m.column_labels);
  BARY_CHECK(std::ssize(values) == rows * columns, "heatmap: {} values for {} x {} labels; give one each",
             values.size(), rows, columns);
  int widest = 0;
  for (const std::string& l : m.row_labels) widest = std::max(widest, display_width(l));
  int tallest = 0;
  for (const std::string& l : m.column_labels) tallest = std::max(tallest, display_width(l));
  const int cell = static_cast<int>(std::clamp<int64_t>(560 / std::max<int64_t>(columns, 1), 14, 44));
  const int cell_height = std::min(cell, 28), left = 28 + 8 * widest, top = 50 + 8 * tallest;
  const int width = left + cell * static_cast<int>(columns) + 16, bottom = top + cell_height * static_cast<int>(rows),
            height = bottom + 34;
  std::string out = opened(std::max(width, 24 + 7 * display_width(m.title)), height, m.title, standalone);
  out += text_at(8, 18, "start", m.title, " font-weight=\"bold\"");
  const std::string rows_are = m.row_axis.empty() ? "" : "↓ " + m.row_axis + "   ";
  out += text_at(8, 35, "start", rows_are + (m.column_axis.empty() ? "" : "→ " + m.column_axis));
  for (int64_t c = 0; c < columns; ++c) {
    const double x = left + cell * (static_cast<double>(c) + 0.5) + 4;
    out += text_at(x, top - 6, "start", m.column_labels[static_cast<size_t>(c)],
                   fmt::format(" transform=\"rotate(-90 {:.1f} {})\"", x, top - 6));
  }
  // The darkest cell would vanish in a dark page: all stand on white, under either.
  out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n", left - 1, top - 1,
                     cell * columns + 1, cell_height * rows + 1);
  for (int64_t r = 0; r < rows; ++r) {
    const double y = top + cell_height * static_cast<double>(r);
    out += text_at(left - 6, y + cell_height / 2.0 + 4, "end", m.row_labels[static_cast<size_t>(r)]);
    for (int64_t c = 0; c < columns; ++c) {
      const double v = values[static_cast<size_t>(r * columns + c)], x = left + cell * static_cast<double>(c);
      const double share = std::isfinite(v) ? std::clamp((v - m.low) / (m.high - m.low), 0.0, 1.0) : 0;
      out += shaded(x, y, cell - 1, cell_height - 1, share);
      if (cell >= 30)
        out += text_at(x + cell / 2.0, y + cell_height / 2.0 + 4, "middle",
                       std::isfinite(v) ? fmt::format("{:.2f}", v) : "",
                       share > 0.63 ? " class=\"on\" font-size=\"11\"" : " class=\"off\" font-size=\"11\"");
    }
    out += "\n";
  }
  return out + colour_scale(8, bottom + 12, m.low, m.high) + "</svg>\n";
}

}  // namespace bary
