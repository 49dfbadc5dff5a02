// SPDX-License-Identifier: Apache-2.0
#include "bary/report/heat.h"

#include <algorithm>
#include <cmath>

#include "bary/base/error.h"
#include "bary/base/quote.h"
#include "bary/report/format.h"

namespace bary {
namespace {

// What can stand in a cell: a label without what a terminal would act on
std::string sign_of(const std::string& label) {
  if (label.empty()) return "?";
  if (label == " ") return "_";
  return label.find_first_of("\n\t") == std::string::npos ? printable(label) : "?";
}

std::string padded(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

}  // namespace

std::string text_heatmap(std::span<const float> values, std::span<const std::string> rows,
                         std::span<const std::string> columns, bool unicode) {
  BARY_CHECK(values.size() == rows.size() * columns.size(), "text_heatmap: {} values for {} rows of {} columns",
             values.size(), rows.size(), columns.size());
  const std::vector<std::string> shades =
      unicode ? std::vector<std::string>{" ", "·", "░", "▒", "▓", "█"}
              : std::vector<std::string>{" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  int width = 1, cell = 1;
  for (const std::string& r : rows) width = std::max(width, display_width(sign_of(r)));
  for (const std::string& c : columns) cell = std::max(cell, display_width(sign_of(c)));
  cell = std::min(cell, 8);
  std::string out(static_cast<size_t>(width) + 2, ' ');
  for (const std::string& c : columns) out += padded(fitted(sign_of(c), cell, unicode), cell + 1);
  out += '\n';
  for (size_t r = 0; r < rows.size(); ++r) {
    out += padded(sign_of(rows[r]), width) + "  ";
    for (size_t c = 0; c < columns.size(); ++c) {
      const float v = values[r * columns.size() + c];
      const float place = std::isfinite(v) ? std::clamp(v, 0.0f, 1.0f) * static_cast<float>(shades.size()) : 0;
      const std::string& shade = shades[std::min(static_cast<size_t>(place), shades.size() - 1)];
      for (int i = 0; i < cell; ++i) out += shade;
      out += ' ';
    }
    out += '\n';
  }
  return out;
}

}  // namespace bary
