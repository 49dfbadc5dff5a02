// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/row_sums.h"

#include "bary/kernel/rows.h"

namespace bary {

float* RowSums::row(int64_t offset, int use, int64_t row, int64_t channels) {
  Table& table = tables_[{offset, use}];
  table.channels = channels;
  const auto [at, fresh] = table.places.try_emplace(row, static_cast<int64_t>(table.sums.size()));
  if (fresh) table.sums.insert(table.sums.end(), static_cast<std::size_t>(channels), 0.0f);
  return table.sums.data() + at->second;
}

void RowSums::add(const RowSums& other) {
  for (const auto& [key, table] : other.tables_)
    for (const auto& [r, at] : table.places)
      kernel::add_rows(1, table.channels, table.sums.data() + at, 0, row(key.first, key.second, r, table.channels), 0);
}

void RowSums::add_to(float* gradients) const {
  for (const auto& [key, table] : tables_)
    for (const auto& [r, at] : table.places)
      kernel::add_rows(1, table.channels, table.sums.data() + at, 0, gradients + key.first + r * table.channels, 0);
}

}  // namespace bary
