// SPDX-License-Identifier: Apache-2.0
// Attention as the formulas have it, from plain operations.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "bary/base/portable_math.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/attention_sides.h"

namespace bary {

float alibi_slope(int64_t head, int64_t heads) {
  return static_cast<float>(portable::pow(2.0, -8.0 * static_cast<double>(head + 1) / static_cast<double>(heads)));
}

namespace {

// rotate half, from plain operations: x cos + (-x2, x1) sin with tables spread over all heads
Tensor rotate_by_definition(const Tensor& x, int64_t heads, int64_t D, const RotaryTable& table) {
  int64_t T = x.dim(1), half = D / 2;
  Tensor c(x.shape()), s(x.shape());
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t i = 0; i < heads * D; ++i) {
      int64_t at = r % T * half + i % D % half;
      c.row(r)[i] = table.cosines.data()[at];
      s.row(r)[i] = table.sines.data()[at];
    }
  }
  std::vector<Tensor> swapped;
  for (int64_t h = 0; h < heads; ++h) {
    swapped.push_back(columns(x, h * D + half, half) * -1.0f);
    swapped.push_back(columns(x, h * D, half));
  }
  return x * c + concat(swapped) * s;
}

Tensor repeat_heads(const Tensor& x, int64_t groups, int64_t times) {  // key head g serves heads g*times ..
  if (times == 1) return x;
  int64_t D = x.channels() / groups;
  std::vector<Tensor> parts;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < times; ++i) parts.push_back(columns(x, g * D, D));
  return concat(parts);
}

// One past the last key that each row (b, h, t) sees, where lengths or prefixes decide
Tensor masked_by_sequence(const Tensor& scores, const AttentionSides& s, const AttentionOptions& o) {
  std::vector<int64_t> end;
  for (int64_t r = 0; r < scores.rows(); ++r) {
    const auto b = static_cast<size_t>(r / s.T / s.H);
    const int64_t keys = s.lengths.empty() ? s.S : s.lengths[b];
    const int64_t causal = std::max(r % s.T + 1, o.prefix.empty() ? 0 : o.prefix[b]);
    end.push_back(o.mask == Mask::full ? keys : std::min(causal, keys));
  }
  return masked_from(scores, end);
}

// Nobody asks for the rows of padding, so those of the pattern are zeros (B H,T,S).
Tensor without_padded_queries(const Tensor& pattern, const AttentionSides& s) {
  if (s.cross || s.lengths.empty()) return pattern;
  Tensor asked(pattern.shape());
  for (int64_t r = 0; r < asked.rows(); ++r)
    std::fill_n(asked.row(r), s.S, r % s.T < s.lengths[static_cast<size_t>(r / s.T / s.H)] ? 1.0f : 0.0f);
  return pattern * asked;
}

// softmax(masked scores) v for projected q (B,T,H D), k and v (B,S,H D)
Tensor attend(const AttentionSides& s, const AttentionOptions& o, const Tensor& q, const Tensor& k, const Tensor& v,
              const std::function<Tensor(const Tensor&)>& edit) {
  Tensor scores = matmul_nt(split_heads(q, s.H), split_heads(k, s.H)) * s.scale(o);
  if (o.alibi) {
    Tensor penalty(scores.shape());
    for (int64_t r = 0; r < penalty.rows(); ++r)
      for (int64_t j = 0; j < s.S; ++j)
        penalty.row(r)[j] = -alibi_slope(r / s.T % s.H, s.H) * static_cast<float>(std::abs(r % s.T - j));
    scores = scores + penalty;
  }
  const bool by_sequence = !s.lengths.empty() || !o.prefix.empty();
  Tensor pattern = softmax(by_sequence ? masked_by_sequence(scores, s, o) : masked(scores, o.mask, o.window));
  if (edit) pattern = edit(pattern);
  pattern = without_padded_queries(pattern, s);
  if (o.look) o.look(Tensor::from(Shape{s.B, s.H, s.T, s.S}, pattern.to_vector()));
  return merge_heads(matmul(pattern, split_heads(v, s.H)), s.H);
}

}  // namespace

Tensor attention_by_definition(const Tensor& qkv, const AttentionOptions& o,
                               const std::function<Tensor(const Tensor&)>& edit) {
  const AttentionSides s = self_sides("attention_by_definition", qkv, o);
  BARY_CHECK(o.dropout.p == 0,
             "attention_by_definition: it drops nothing, and dropout {} came; edit patterns in evaluation",
             o.dropout.p);
  BARY_CHECK(!o.cache, "attention_by_definition: it sees the whole text at once, and a cache came; run without one");
  Tensor q = columns(qkv, 0, s.H * s.D), k = columns(qkv, s.k_column, s.G * s.D),
         v = columns(qkv, s.v_column, s.G * s.D);
  if (o.rotary) q = rotate_by_definition(q, s.H, s.D, *o.rotary), k = rotate_by_definition(k, s.G, s.D, *o.rotary);
  return attend(s, o, q, repeat_heads(k, s.G, s.group()), repeat_heads(v, s.G, s.group()), edit);
}

Tensor cross_attention_by_definition(const Tensor& q, const Tensor& kv, const AttentionOptions& o,
                                     const std::function<Tensor(const Tensor&)>& edit) {
  const AttentionSides s = cross_sides("cross_attention_by_definition", q, kv, o);
  BARY_CHECK(o.dropout.p == 0,
             "cross_attention_by_definition: it drops nothing, and dropout {} came; edit patterns in "
             "evaluation",
             o.dropout.p);
  Tensor k = columns(kv, 0, s.G * s.D), v = columns(kv, s.v_column, s.G * s.D);
  return attend(s, o, q, repeat_heads(k, s.G, s.group()), repeat_heads(v, s.G, s.group()), edit);
}

}  // namespace bary
