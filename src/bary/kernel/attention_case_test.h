// SPDX-License-Identifier: Apache-2.0
// One head's inputs for the attention tests, and the kernels called on them.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bary/kernel/attention.h"
#include "bary/kernel/checks_test.h"
#include "bary/kernel/reference.h"

namespace bary::kernel {

struct AttentionCase {
  explicit AttentionCase(const AttentionHead& head)
      : h(head),
        q(random_matrix(h.T, h.D, h.D + 3, 1)),
        k(random_matrix(h.S, h.D, h.D + 5, 2)),
        v(random_matrix(h.S, h.D, h.D + 5, 3)),
        dout(random_matrix(h.T, h.D, h.D + 1, 4)) {}
  std::string str() const {
    return fmt::format("T {} S {} D {} first {} causal {} window {} prefix {} slope {} dropout {}", h.T, h.S, h.D,
                       h.first, h.causal, h.window, h.prefix, h.slope, h.dropout.p);
  }
  // The largest sum of |terms| of a score: what its rounding error is measured in.
  double score_size() const {
    double top = 0;
    for (int64_t t = 0; t < h.T; ++t) {
      for (int64_t j = 0; j < h.S; ++j) {
        double s = 0;
        for (int64_t d = 0; d < h.D; ++d) s += std::fabs(static_cast<double>(q(t, d) * k(j, d)));
        top = std::max(top, s);
      }
    }
    return top * static_cast<double>(h.scale) + static_cast<double>(h.slope) * static_cast<double>(h.first + h.T);
  }
  // of a weighted mean of values: p is off by the score's error, and the sum over the keys rounds
  double tolerance() const {
    double times = h.dropout.p > 0 ? 1 / (1 - static_cast<double>(h.dropout.p)) : 1;
    return 2 * kEps * (score_size() + std::sqrt(static_cast<double>(h.S)) + 4) * largest(v.doubles()) * times;
  }
  AttentionHead h;
  Matrix q, k, v, dout;
};

inline AttentionHead head_of(int64_t T, int64_t D, bool causal = true, int64_t window = 0) {
  AttentionHead h;
  h.T = h.S = T;
  h.D = D;
  h.causal = causal;
  h.window = window;
  h.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(D)));
  return h;
}
inline AttentionHead with_dropout(AttentionHead h, float p) {
  h.dropout.p = p;
  h.dropout.seed = 11;
  h.sequence = 5;
  h.head = 2;
  return h;
}

inline Matrix panels_of(const Matrix& k) {
  Matrix panels(1, key_panel_size(k.rows(), k.n()));
  pack_keys(k.data(), k.ld(), k.rows(), k.n(), panels.data());
  return panels;
}

struct AttentionRun {
  explicit AttentionRun(const AttentionCase& c, bool keep_pattern)
      : out(c.h.T, c.h.D, c.h.D + 2),
        row_max(1, c.h.T),
        row_inverse(1, c.h.T),
        pattern(keep_pattern ? c.h.T : 0, pattern_stride(c.h.S)) {
    kept = {row_max.data(), row_inverse.data(), keep_pattern ? pattern.data() : nullptr};
    Matrix panels = panels_of(c.k);
    attention_forward(c.h, c.q.data(), c.q.ld(), panels.data(), c.v.data(), c.v.ld(), out.data(), out.ld(), kept);
    EXPECT_TRUE(out.gaps_untouched());
  }
  std::vector<float> values() const {
    std::vector<float> all = out.values();
    append(all, row_max.values());
    append(all, row_inverse.values());
    return all;
  }
  Matrix out, row_max, row_inverse, pattern;
  AttentionKept kept;
};

// Lengths around tiles of six rows, vectors, panels and the blocks of 256 keys.
inline const std::vector<int64_t> kLengths =
    kSlowBuild ? std::vector<int64_t>{1, 7, 65, 257, 300}
               : std::vector<int64_t>{1, 2, 5, 6, 7, 63, 64, 65, 130, 256, 257, 300, 520};

// Keys before the prefix are seen by every query, the others by those after them.
inline std::vector<AttentionHead> heads_with_a_prefix() {
  std::vector<AttentionHead> heads;
  auto add = [&](AttentionHead h, int64_t prefix) {
    h.prefix = prefix;
    heads.push_back(h);
  };
  for (int64_t T : kLengths)
    for (int64_t prefix : {int64_t{1}, int64_t{5}, T / 2, T - 1, T}) add(head_of(T, 16), prefix);
  AttentionHead sloped = with_dropout(head_of(70, 20), 0.3f);
  sloped.slope = 0.25f;
  add(sloped, 30);
  return heads;
}
inline const std::vector<int64_t> kWidths =
    kSlowBuild ? std::vector<int64_t>{1, 20, 80} : std::vector<int64_t>{1, 4, 8, 16, 20, 32, 40, 64, 80};

}  // namespace bary::kernel
