// SPDX-License-Identifier: Apache-2.0
#include "bary/report/table.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/report/format.h"

namespace bary {

Table& Table::row(std::vector<std::string> cells) {
  BARY_CHECK(!cells.empty() && cells.size() <= columns_.size(),
             "table: a row of {} cells, the table has {} columns; give one each", cells.size(), columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

Table& Table::rule() {
  rows_.emplace_back();
  return *this;
}

std::string Table::text() const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(columns_[c].name);
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, display_width(row[c]));
    }
    widths.push_back(width);
  }
  std::string out;
  auto line = [&](auto&& cell_of) {
    std::string text;
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::string cell = cell_of(c);
      std::string space(static_cast<size_t>(widths[c] - display_width(cell)), ' ');
      text += (c ? "  " : "") + (columns_[c].align == Align::right ? space + cell : cell + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  auto across = [&](size_t c) { return std::string(static_cast<size_t>(widths[c]), '-'); };
  line([&](size_t c) { return columns_[c].name; });
  line(across);
  for (const auto& row : rows_) {
    if (row.empty())
      line(across);
    else
      line([&](size_t c) { return row[c]; });
  }
  return out;
}

}  // namespace bary
