// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/attention.h"

#include <algorithm>
#include <cmath>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"
#include "bary/kernel/attention.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"

namespace bary {

KeyValues::KeyValues(int64_t B_, int64_t heads_, int64_t D_, int64_t capacity_)
    : B(B_), heads(heads_), D(D_), capacity(capacity_), value_stride(padded_stride(D_)) {
  for (int64_t i = 0; i < B * heads; ++i) {
    keys.emplace_back(kernel::key_panel_size(capacity, D));
    values.emplace_back(capacity * value_stride);
  }
}

float alibi_slope(int64_t head, int64_t heads) {
  return static_cast<float>(portable::pow(2.0, -8.0 * static_cast<double>(head + 1) / static_cast<double>(heads)));
}

namespace {

struct Layout {
  int64_t B, T, H, G, D;  // G key heads
  int64_t width() const { return (H + 2 * G) * D; }
};

Layout check(const char* op, const Tensor& qkv, const AttentionOptions& o) {
  BARY_CHECK(qkv.shape().rank() == 3, "{}: qkv is {}, expected (B,T,(H+2Hkv)D)", op, qkv.shape().str());
  Layout l{qkv.dim(0), qkv.dim(1), o.heads, o.kv_heads ? o.kv_heads : o.heads, 0};
  BARY_CHECK(l.H > 0 && l.G > 0 && l.H % l.G == 0,
             "{}: {} heads over {} key heads; heads must be a multiple of key heads", op, l.H, l.G);
  BARY_CHECK(qkv.dim(2) % (l.H + 2 * l.G) == 0, "{}: {} channels do not divide into {} query and 2 x {} key heads", op,
             qkv.dim(2), l.H, l.G);
  l.D = qkv.dim(2) / (l.H + 2 * l.G);
  BARY_CHECK(o.dropout.p >= 0 && o.dropout.p < 1, "{}: dropout probability {}; it must be at least 0 and below 1", op,
             o.dropout.p);
  BARY_CHECK(o.mask != Mask::window || o.window > 0, "{}: a window of {}; it must be at least 1", op, o.window);
  return l;
}

kernel::AttentionHead head_of(const Layout& l, const AttentionOptions& o, int64_t b, int64_t h, int64_t first) {
  kernel::AttentionHead a;
  a.T = l.T;
  a.S = first + l.T;
  a.D = l.D;
  a.first = first;
  a.causal = o.mask != Mask::full;
  a.window = o.mask == Mask::window ? o.window : 0;
  a.scale = o.scale ? 1.0f / std::sqrt(static_cast<float>(l.D)) : 1.0f;
  a.slope = o.alibi ? alibi_slope(h, l.H) : 0;
  a.dropout = o.dropout;
  a.sequence = o.rows.sequence + static_cast<uint64_t>(b);
  a.head = static_cast<uint32_t>(h);
  return a;
}

// Queries and keys turned by their positions, in a copy: (B,T,(H+2G)D) with the values as they are
Tensor turned(const Tensor& qkv, const Layout& l, const RotaryTable& table, int64_t first) {
  int64_t half = l.D / 2;
  BARY_CHECK(first + l.T <= table.positions,
             "rotary positions: position {} asked for, the table ends at {}; make a longer "
             "table",
             first + l.T - 1, table.positions - 1);
  Tensor y(qkv.shape());
  for (int64_t r = 0; r < qkv.rows(); ++r) std::copy_n(qkv.row(r), qkv.channels(), y.row(r));
  for (int64_t b = 0; b < l.B; ++b)
    kernel::rotate_rows(l.T, l.H + l.G, l.D, y.row(b * l.T), y.stride(), table.cosines.data() + first * half,
                        table.sines.data() + first * half, 1);
  return y;
}

// What the forward pass leaves for the backward pass and for watchers
struct Kept {
  Tensor qkv;                   // after rotation
  Tensor pattern;               // (B H T, stride) for short texts
  Buffer row_max, row_inverse;  // B H T
  kernel::AttentionKept at(const Layout& l, int64_t b, int64_t h) const {
    int64_t i = (b * l.H + h) * l.T;
    return {row_max.data() + i, row_inverse.data() + i,
            pattern.defined() ? pattern.data() + i * kernel::pattern_stride(l.T) : nullptr};
  }
};

void forward_heads(const Layout& l, const AttentionOptions& o, const Tensor& qkv, const Tensor& y, const Kept* kept,
                   int64_t b, int64_t g) {
  const float* base = qkv.row(b * l.T);
  const float* k = base + (l.H + g) * l.D;
  const float* v = base + (l.H + l.G + g) * l.D;
  Buffer panels;
  const float* key_panels;
  int64_t ldv = qkv.stride(), first = 0;
  if (o.cache) {
    Buffer &keys = o.cache->keys[static_cast<size_t>(b * l.G + g)],
           &values = o.cache->values[static_cast<size_t>(b * l.G + g)];
    first = o.cache->length;
    for (int64_t t = 0; t < l.T; ++t) {
      kernel::append_key(k + t * qkv.stride(), first + t, l.D, keys.data());
      std::copy_n(v + t * qkv.stride(), l.D, values.data() + (first + t) * o.cache->value_stride);
    }
    key_panels = keys.data();
    v = values.data();
    ldv = o.cache->value_stride;
  } else {
    panels = Buffer(kernel::key_panel_size(l.T, l.D));
    kernel::pack_keys(k, qkv.stride(), l.T, l.D, panels.data());
    key_panels = panels.data();
  }
  for (int64_t h = g * (l.H / l.G); h < (g + 1) * (l.H / l.G); ++h) {
    kernel::attention_forward(head_of(l, o, b, h, first), base + h * l.D, qkv.stride(), key_panels, v, ldv,
                              y.row(b * l.T) + h * l.D, y.stride(), kept ? kept->at(l, b, h) : kernel::AttentionKept{});
  }
}

// Adds to d, laid out as qkv.
void backward_heads(const Layout& l, const AttentionOptions& o, const Kept& kept, const Tensor& y, GradientSlot dqkv,
                    int64_t b, int64_t g) {
  const Tensor& qkv = kept.qkv;
  const float *base = qkv.row(b * l.T), *k = base + (l.H + g) * l.D, *v = base + (l.H + l.G + g) * l.D;
  Buffer scratch(kernel::attention_backward_scratch(l.D));
  for (int64_t h = g * (l.H / l.G); h < (g + 1) * (l.H / l.G); ++h) {
    kernel::AttentionInputs in{base + h * l.D,
                               k,
                               v,
                               qkv.stride(),
                               qkv.stride(),
                               y.row(b * l.T) + h * l.D,
                               y.cotangent() + b * l.T * y.stride() + h * l.D,
                               y.stride()};
    float* d = dqkv.data + b * l.T * dqkv.stride;
    kernel::AttentionGradient grad{d + h * l.D, d + (l.H + g) * l.D, d + (l.H + l.G + g) * l.D, dqkv.stride};
    kernel::attention_backward(head_of(l, o, b, h, 0), in, kept.at(l, b, h), grad, scratch.data());
  }
}

Tensor watched_pattern(const Layout& l, const AttentionOptions& o, const Kept& kept, int64_t first) {
  FlushDenormals flush;  // as the forward pass ran
  Tensor p(Shape{l.B, l.H, l.T, first + l.T});
  for (int64_t b = 0; b < l.B; ++b) {
    for (int64_t h = 0; h < l.H; ++h) {
      int64_t g = h / (l.H / l.G);
      const float* base = kept.qkv.row(b * l.T);
      Buffer panels;
      if (!o.cache) {
        panels = Buffer(kernel::key_panel_size(l.T, l.D));
        kernel::pack_keys(base + (l.H + g) * l.D, kept.qkv.stride(), l.T, l.D, panels.data());
      }
      const float* keys = o.cache ? o.cache->keys[static_cast<size_t>(b * l.G + g)].data() : panels.data();
      kernel::attention_pattern(head_of(l, o, b, h, first), base + h * l.D, kept.qkv.stride(), keys, kept.at(l, b, h),
                                p.row((b * l.H + h) * l.T), p.stride());
    }
  }
  return p;
}

}  // namespace

Tensor attention(const Tensor& qkv, const AttentionOptions& o) {
  Layout l = check("attention", qkv, o);
  const bool recording = Tape::active() && qkv.needs_grad();
  int64_t first = 0;
  if (o.cache) {
    BARY_CHECK(!recording, "attention: a cache has no gradient; use it outside a tape");
    BARY_CHECK(o.cache->B == l.B && o.cache->heads == l.G && o.cache->D == l.D,
               "attention: the cache is for {} x {} heads "
               "of {}, the call for {} x {} of {}",
               o.cache->B, o.cache->heads, o.cache->D, l.B, l.G, l.D);
    first = o.cache->length;
    BARY_CHECK(first + l.T <= o.cache->capacity, "attention: {} positions held and {} more, the cache has room for {}",
               first, l.T, o.cache->capacity);
    BARY_CHECK(o.mask != Mask::full, "attention: a cache needs a causal mask");
  }
  auto kept = std::make_shared<Kept>();
  kept->qkv = o.rotary ? turned(qkv, l, *o.rotary, first) : qkv;
  const bool keep = recording || o.look;
  if (keep) {
    kept->row_max = Buffer(l.B * l.H * l.T);
    kept->row_inverse = Buffer(l.B * l.H * l.T);
    if (recording && l.T <= kernel::kKeyBlock) {
      kept->pattern = Tensor(Shape{l.B * l.H * l.T * kernel::pattern_stride(l.T)});
    }
  }
  Tensor y(qkv.shape().with_channels(l.H * l.D));
  const int64_t work = l.T * (first + l.T) * l.D * (l.H / l.G);
  parallel_for(l.B * l.G, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   forward_heads(l, o, kept->qkv, y, keep ? kept.get() : nullptr, i / l.G, i % l.G);
               });
  if (o.cache) o.cache->length += l.T;
  if (o.look) o.look(watched_pattern(l, o, *kept, first));
  record(
      y,
      [=] {
        // In place where nothing is there yet: rotation turns back what this op contributes, nothing else.
        const auto slot = qkv.grad();
        const Tensor own = slot.accumulate ? Tensor::zeros(qkv.shape()) : Tensor();
        const GradientSlot d =
            slot.accumulate ? GradientSlot{own.data(), own.stride(), true} : slot.cleared(qkv.rows());
        parallel_for(l.B * l.G, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) backward_heads(l, o, *kept, y, d, i / l.G, i % l.G);
        });
        if (o.rotary) {
          for (int64_t b = 0; b < l.B; ++b)
            kernel::rotate_rows(l.T, l.H + l.G, l.D, d.data + b * l.T * d.stride, d.stride, o.rotary->cosines.data(),
                                o.rotary->sines.data(), -1);
        }
        if (slot.accumulate)
          kernel::add_rows(own.rows(), own.channels(), own.data(), own.stride(), slot.data, slot.stride);
      },
      qkv);
  return y;
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

}  // namespace

Tensor attention_by_definition(const Tensor& qkv, const AttentionOptions& o,
                               const std::function<Tensor(const Tensor&)>& edit) {
  Layout l = check("attention_by_definition", qkv, o);
  BARY_CHECK(!o.cache, "attention_by_definition: it sees the whole text at once, and a cache came; run without one");
  Tensor q = columns(qkv, 0, l.H * l.D), k = columns(qkv, l.H * l.D, l.G * l.D),
         v = columns(qkv, (l.H + l.G) * l.D, l.G * l.D);
  if (o.rotary) q = rotate_by_definition(q, l.H, l.D, *o.rotary), k = rotate_by_definition(k, l.G, l.D, *o.rotary);
  k = repeat_heads(k, l.G, l.H / l.G), v = repeat_heads(v, l.G, l.H / l.G);
  Tensor scores = matmul_nt(split_heads(q, l.H), split_heads(k, l.H)) * head_of(l, o, 0, 0, 0).scale;
  if (o.alibi) {
    Tensor penalty(scores.shape());
    for (int64_t r = 0; r < penalty.rows(); ++r)
      for (int64_t j = 0; j < l.T; ++j)
        penalty.row(r)[j] = -alibi_slope(r / l.T % l.H, l.H) * static_cast<float>(std::abs(r % l.T - j));
    scores = scores + penalty;
  }
  Tensor pattern = softmax(masked(scores, o.mask, o.window));
  if (edit) pattern = edit(pattern);
  return merge_heads(matmul(pattern, split_heads(v, l.H)), l.H);
}

}  // namespace bary
