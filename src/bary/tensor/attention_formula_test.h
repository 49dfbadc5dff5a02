// SPDX-License-Identifier: Apache-2.0
// Multi-head attention and its gradient in double, for every option of AttentionOptions but the cache and lengths.
#pragma once
#include <fmt/format.h>

#include "bary/kernel/reference.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {

constexpr double kTheta = 10000;

struct AttentionShape {
  int64_t B, T, H, G, D;
  int64_t width() const { return (H + 2 * G) * D; }
};

inline kernel::AttentionHead formula_head(const AttentionShape& s, const AttentionOptions& o, int64_t b, int64_t h) {
  kernel::AttentionHead a;
  a.T = a.S = s.T;
  a.D = s.D;
  a.causal = o.mask != Mask::full;
  a.window = o.mask == Mask::window ? o.window : 0;
  a.prefix = o.prefix.empty() ? 0 : o.prefix[static_cast<size_t>(b)];
  a.scale = o.scale ? static_cast<float>(1 / std::sqrt(static_cast<double>(s.D))) : 1.0f;
  a.slope =
      o.alibi ? static_cast<float>(std::pow(2.0, -8.0 * static_cast<double>(h + 1) / static_cast<double>(s.H))) : 0;
  a.dropout = o.dropout;
  a.sequence = o.rows.sequence + static_cast<uint64_t>(b);
  a.head = static_cast<uint32_t>(h);
  return a;
}

// Head `head` of the columns of qkv (query heads, key heads, value heads) of sequence b, turned if it should be
inline Doubles head_rows(const AttentionShape& s, const AttentionOptions& o, const Doubles& qkv, int64_t b,
                         int64_t head) {
  Doubles x;
  for (int64_t t = 0; t < s.T; ++t) {
    const double* from = qkv.data() + (b * s.T + t) * s.width() + head * s.D;
    x.insert(x.end(), from, from + s.D);
    if (o.rotary && head < s.H + s.G)
      kernel::reference::rotate(x.data() + t * s.D, s.D, static_cast<double>(t), kTheta, 1);
  }
  return x;
}

struct AttentionFormula {
  Doubles out, pattern, gradient;  // (B,T,H D), (B,H,T,T), (B,T,width) for the upstream gradient dout
};
inline AttentionFormula attention_formula(const AttentionShape& s, const AttentionOptions& o, const Doubles& qkv,
                                          const Doubles& dout = {}) {
  namespace reference = kernel::reference;
  AttentionFormula f{
      Doubles(static_cast<size_t>(s.B * s.T * s.H * s.D)), {}, Doubles(dout.empty() ? 0 : qkv.size(), 0.0)};
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t h = 0; h < s.H; ++h) {
      const int64_t g = h / (s.H / s.G);
      const auto head = formula_head(s, o, b, h);
      Doubles q = head_rows(s, o, qkv, b, h), k = head_rows(s, o, qkv, b, s.H + g),
              v = head_rows(s, o, qkv, b, s.H + s.G + g);
      auto r = reference::attention(head, q, k, v);
      f.pattern.insert(f.pattern.end(), r.pattern.begin(), r.pattern.end());
      Doubles up(static_cast<size_t>(s.T * s.D));
      for (int64_t t = 0; t < s.T; ++t) {
        for (int64_t d = 0; d < s.D; ++d) {
          const size_t at = static_cast<size_t>((b * s.T + t) * s.H * s.D + h * s.D + d);
          f.out[at] = r.out[static_cast<size_t>(t * s.D + d)];
          if (!dout.empty()) up[static_cast<size_t>(t * s.D + d)] = dout[at];
        }
      }
      if (dout.empty()) continue;
      auto grads = reference::attention_backward(head, q, k, v, up);
      std::pair<Doubles*, int64_t> parts[] = {{&grads.dq, h}, {&grads.dk, s.H + g}, {&grads.dv, s.H + s.G + g}};
      for (auto& [dx, place] : parts) {
        for (int64_t t = 0; t < s.T; ++t) {
          double* row = dx->data() + t * s.D;
          if (o.rotary && place < s.H + s.G) reference::rotate(row, s.D, static_cast<double>(t), kTheta, -1);
          for (int64_t d = 0; d < s.D; ++d)
            f.gradient[static_cast<size_t>((b * s.T + t) * s.width() + place * s.D + d)] += row[d];
        }
      }
    }
  }
  return f;
}

// What rounding may do to an output: a score of size |score| is off by eps |score| root D, and so is its weight.
inline double attention_tolerance(const AttentionShape& s, const AttentionOptions& o, const Doubles& x) {
  const double top = largest(x), width = static_cast<double>(s.D);
  const double score =
      (o.scale ? std::sqrt(width) : width) * top * top * 0.5 + (o.alibi ? 0.5 * static_cast<double>(s.T) : 0);
  const double angle = o.rotary ? score : 0;  // tables of cosines are rounded once more
  return 2 * kEps * (score + angle + std::sqrt(static_cast<double>(s.T)) + 8) * top;
}

inline std::string text_of(const AttentionShape& s, const AttentionOptions& o) {
  return fmt::format("B {} T {} H {} G {} D {} mask {} window {} scale {} alibi {} rotary {} dropout {}", s.B, s.T, s.H,
                     s.G, s.D, static_cast<int>(o.mask), o.window, o.scale, o.alibi, o.rotary != nullptr, o.dropout.p);
}

}  // namespace bary
