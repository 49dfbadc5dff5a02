// SPDX-License-Identifier: Apache-2.0
// A table of aligned columns in plain text.
#pragma once
#include <string>
#include <vector>

namespace bary {

enum class Align { left, right };

struct Column {
  std::string name;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // One text per column, without line breaks; missing ones at the end are empty, too many are an Error.
  Table& row(std::vector<std::string> cells);
  Table& rule();  // a line across, for sums
  size_t rows() const { return rows_.size(); }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& cells() const { return rows_; }  // an empty row is a line across

  // Header, a line, rows; two spaces between columns and none at the end of a line. Every line ends with '\n'.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace bary
