// SPDX-License-Identifier: Apache-2.0
// A heatmap for a terminal: a row of shades for every row of values between 0 and 1, with its label before it and the
// labels of the columns in a line above, each over its column and cut where it is wider than eight signs.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace bary {

// values: rows by columns, row by row. Without Unicode the shades are " .:-=+*#%@".
std::string text_heatmap(std::span<const float> values, std::span<const std::string> rows,
                         std::span<const std::string> columns, bool unicode);

}  // namespace bary
