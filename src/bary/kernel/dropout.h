// SPDX-License-Identifier: Apache-2.0
// Dropout masks from counters (Srivastava et al. 2014; PyTorch's scaling by 1/(1-p)): whether an element is kept is a
// function of where it stands in the model and in the data, never of a buffer offset or of what was drawn before.
#pragma once
#include <cstdint>

#include "bary/base/random.h"

namespace bary::kernel {

// Names one site of one layer in one training step; a row of it is (sequence, position) or (sequence, head, query).
struct DropoutSite {
  float p = 0;  // probability of a zero, in [0, 1); 0 = off
  uint64_t seed = 0, step = 0;
  uint32_t layer = 0, site = 0;
};

inline uint32_t dropout_row_key(const DropoutSite& s, uint64_t sequence, uint32_t head, uint64_t position) {
  auto name = philox4x32({static_cast<uint32_t>(s.step), static_cast<uint32_t>(s.step >> 32), s.layer, s.site},
                         {static_cast<uint32_t>(s.seed), static_cast<uint32_t>(s.seed >> 32)});
  auto row = philox4x32(
      {static_cast<uint32_t>(sequence), static_cast<uint32_t>(sequence >> 32), head, static_cast<uint32_t>(position)},
      {name[0], name[1]});
  return row[0];
}

// the finaliser of MurmurHash3 over (row key, column): every column's draw is independent of its neighbours'
constexpr uint32_t kDropoutColumn = 0x9E3779B9u, kDropoutMix[2] = {0x85EBCA6Bu, 0xC2B2AE35u};
inline bool dropout_keeps(uint32_t row_key, uint32_t column, uint32_t threshold) {
  uint32_t h = row_key ^ column * kDropoutColumn;
  h = (h ^ h >> 16) * kDropoutMix[0];
  h = (h ^ h >> 13) * kDropoutMix[1];
  return (h ^ h >> 16) >= threshold;
}
inline uint32_t dropout_threshold(float p) { return static_cast<uint32_t>(static_cast<double>(p) * 4294967296.0); }

// y[c] = x[c] / (1-p) if kept, else 0, for columns first .. first+n-1; in place if y == x
void dropout_row(const float* x, float* y, int64_t n, uint32_t row_key, uint32_t first, float p);

}  // namespace bary::kernel
