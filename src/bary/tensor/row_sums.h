// SPDX-License-Identifier: Apache-2.0
// Gradients of rows that were looked up in tables, apart from the tables' other gradients. A token table that is also
// the head's weight is used twice in a step: were both uses added to one buffer as they come, the split of the step
// into batches would decide about the order of a sum. Here look-ups have sums of their own, which are added once, at
// the end of the step. Only rows that occur take memory.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace bary {

class RowSums {
 public:
  // The sum of row `row` of the table at `offset` of a flat buffer, of its use number `use` (source and target may
  // share a table); `channels` floats, zero at first, valid until the next call.
  float* row(int64_t offset, int use, int64_t row, int64_t channels);
  void add(const RowSums& other);       // row by row, one addition each
  void add_to(float* gradients) const;  // the flat buffer; uses in their order
  void clear() { tables_.clear(); }

 private:
  struct Table {
    int64_t channels = 0;
    std::map<int64_t, int64_t> places;  // row -> where its sum begins
    std::vector<float> sums;
  };
  std::map<std::pair<int64_t, int>, Table> tables_;
};

}  // namespace bary
