// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/detect.h"

#include <cmath>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"

namespace bary {

double attention_entropy(std::span<const float> row) {
  double sum = 0;
  for (float w : row)
    if (w > 0) sum -= static_cast<double>(w) * portable::log(static_cast<double>(w));
  return sum;
}

double effective_tokens(std::span<const float> row) { return portable::exp(attention_entropy(row)); }

namespace {

void check_pattern(const char* op, const Tensor& pattern) {
  BARY_CHECK(pattern.shape().rank() == 4 && pattern.dim(2) == pattern.dim(3),
             "{}: the pattern is {}, expected (B,H,T,T); take it from attention_patterns", op, pattern.shape().str());
}

}  // namespace

std::vector<uint8_t> detector_mask(HeadKind kind, std::span<const int32_t> tokens) {
  const size_t T = tokens.size();
  std::vector<uint8_t> mask(T * T, 0);
  for (size_t i = 1; i < T; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      bool there = false;
      switch (kind) {
        case HeadKind::previous:
          there = j + 1 == i;
          break;
        case HeadKind::duplicate:
          there = j < i && tokens[j] == tokens[i];
          break;
        case HeadKind::induction:
          there = j > 0 && tokens[j - 1] == tokens[i];
          break;
      }
      mask[i * T + j] = there;
    }
  }
  return mask;
}

std::vector<RowMass> row_mass(HeadKind kind, const Tensor& pattern, std::span<const int32_t> ids, int64_t first) {
  check_pattern("row_mass", pattern);
  const int64_t B = pattern.dim(0), H = pattern.dim(1), T = pattern.dim(2);
  BARY_CHECK(std::ssize(ids) == B * T,
             "row_mass: {} tokens for a pattern of {} sequences of {}; give those it was "
             "made from",
             ids.size(), B, T);
  std::vector<RowMass> heads(static_cast<size_t>(H));
  for (int64_t b = 0; b < B; ++b) {
    const auto mask = detector_mask(kind, ids.subspan(static_cast<size_t>(b * T), static_cast<size_t>(T)));
    for (int64_t i = first; i < T; ++i) {
      const uint8_t* targets = mask.data() + i * T;
      int64_t count = 0;
      for (int64_t j = 0; j <= i; ++j) count += targets[j];
      if (count == 0) continue;
      for (int64_t h = 0; h < H; ++h) {
        RowMass& m = heads[static_cast<size_t>(h)];
        const float* row = pattern.row((b * H + h) * T + i);
        for (int64_t j = 0; j <= i; ++j) m.score += targets[j] ? static_cast<double>(row[j]) : 0.0;
        m.uniform += static_cast<double>(count) / static_cast<double>(i + 1);
        ++m.rows;
      }
    }
  }
  for (RowMass& m : heads) {
    const double n = static_cast<double>(m.rows);  // 0 / 0: NaN says that nothing could be scored
    m.score /= n, m.uniform /= n;
  }
  return heads;
}

}  // namespace bary
