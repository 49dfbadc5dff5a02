// SPDX-License-Identifier: Apache-2.0
// Token sequences of unequal lengths as one batch (B,T): side by side, each filled up on the right.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bary/base/error.h"

namespace bary {

struct Padded {
  std::vector<int32_t> ids;      // B T
  std::vector<int64_t> lengths;  // B

  int64_t B() const { return static_cast<int64_t>(lengths.size()); }
  int64_t T() const { return lengths.empty() ? 0 : static_cast<int64_t>(ids.size()) / B(); }
};

// `filler` stands where there is nothing: any token will do, nobody reads it.
inline Padded pad(std::span<const std::vector<int32_t>> sequences, int32_t filler, int64_t at_least = 0) {
  size_t longest = static_cast<size_t>(at_least);
  for (const auto& s : sequences) longest = std::max(longest, s.size());
  Padded out;
  for (const auto& s : sequences) {
    BARY_CHECK(!s.empty(), "pad: sequence {} of {} is empty; every one needs a token", &s - sequences.data(),
               sequences.size());
    out.ids.insert(out.ids.end(), s.begin(), s.end());
    out.ids.resize(out.ids.size() + longest - s.size(), filler);
    out.lengths.push_back(static_cast<int64_t>(s.size()));
  }
  return out;
}

}  // namespace bary
