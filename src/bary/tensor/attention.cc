// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bary/base/parallel.h"
#include "bary/kernel/attention.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/attention_sides.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

// What one key head of one sequence reads: panels of its keys, rows of its values.
struct Keys {
  const float *panels = nullptr, *values = nullptr;
  int64_t value_stride = 0;
  Buffer packed;
};

Keys held(const KeyValues& kept, int64_t i) {
  return {kept.keys[static_cast<size_t>(i)].data(), kept.values[static_cast<size_t>(i)].data(), kept.value_stride, {}};
}

Keys packed(const AttentionSides& s, int64_t b, int64_t g) {
  Keys keys{nullptr, s.v(b, g), s.kv.stride(), Buffer(kernel::key_panel_size(s.S, s.D))};
  kernel::pack_keys(s.k(b, g), s.kv.stride(), s.S, s.D, keys.packed.data());
  keys.panels = keys.packed.data();
  return keys;
}

void append(const AttentionSides& s, KeyValues& cache, int64_t b, int64_t g) {
  const auto i = static_cast<size_t>(b * s.G + g);
  for (int64_t t = 0; t < s.T; ++t) {
    const int64_t at = t * s.kv.stride(), place = cache.length + t;
    kernel::append_key(s.k(b, g) + at, place, s.D, cache.keys[i].data());
    std::copy_n(s.v(b, g) + at, s.D, cache.values[i].data() + place * cache.value_stride);
  }
}

// Queries and keys turned by their positions, in a copy: (B,T,(H+2G)D) with the values as they are
Tensor turned(const AttentionSides& s, const RotaryTable& table, int64_t first) {
  const Tensor& qkv = s.q;
  int64_t half = s.D / 2;
  Tensor y(qkv.shape());
  for (int64_t r = 0; r < qkv.rows(); ++r) std::copy_n(qkv.row(r), qkv.channels(), y.row(r));
  for (int64_t b = 0; b < s.B; ++b)
    kernel::rotate_rows(s.T, s.H + s.G, s.D, y.row(b * s.T), y.stride(), table.cosines.data() + first * half,
                        table.sines.data() + first * half, 1);
  return y;
}

// What the forward pass leaves for the backward pass and for watchers
struct Kept {
  AttentionSides sides;         // after rotation
  Tensor pattern;               // (B H T, stride) for short texts
  Buffer row_max, row_inverse;  // B H T
  kernel::AttentionKept at(int64_t b, int64_t h) const {
    if (!row_max) return {};
    int64_t i = (b * sides.H + h) * sides.T;
    return {row_max.data() + i, row_inverse.data() + i,
            pattern.defined() ? pattern.data() + i * kernel::pattern_stride(sides.S) : nullptr};
  }
};

// All the queries' heads that one key head of one sequence serves
void forward_heads(const Kept& kept, const AttentionOptions& o, const Tensor& y, std::array<int64_t, 3> place,
                   const Keys& keys) {
  const AttentionSides& s = kept.sides;
  const auto [b, g, first] = place;
  for (int64_t h = g * s.group(); h < (g + 1) * s.group(); ++h) {
    const kernel::AttentionHead head = s.head(o, b, h, first);
    float* out = y.row(b * s.T) + h * s.D;
    kernel::attention_forward(head, s.queries(b, h), s.q.stride(), keys.panels, keys.values, keys.value_stride, out,
                              y.stride(), kept.at(b, h));
    for (int64_t t = head.T; t < s.T; ++t) std::fill_n(out + t * y.stride(), s.D, 0.0f);  // padding
  }
}

struct SideGradients {
  GradientSlot q, kv;
};
void backward_heads(const Kept& kept, const AttentionOptions& o, const Tensor& y, const SideGradients& d, int64_t b,
                    int64_t g) {
  const AttentionSides& s = kept.sides;
  Buffer scratch(kernel::attention_backward_scratch(s.D));
  float* dkv = d.kv.data + b * s.S * d.kv.stride + g * s.D;
  for (int64_t h = g * s.group(); h < (g + 1) * s.group(); ++h) {
    const int64_t at = b * s.T * y.stride() + h * s.D;
    kernel::AttentionInputs in{s.queries(b, h), s.k(b, g),     s.v(b, g),          s.q.stride(),
                               s.kv.stride(),   y.data() + at, y.cotangent() + at, y.stride()};
    kernel::AttentionGradient grad{d.q.data + b * s.T * d.q.stride + h * s.D, dkv + s.k_column, dkv + s.v_column,
                                   d.q.stride, d.kv.stride};
    kernel::attention_backward(s.head(o, b, h, 0), in, kept.at(b, h), grad, scratch.data());
  }
}

template <class KeysOf>
Tensor watched_pattern(const Kept& kept, const AttentionOptions& o, int64_t first, const KeysOf& keys_of) {
  FlushDenormals flush;  // as the forward pass ran
  const AttentionSides& s = kept.sides;
  Tensor p = Tensor::zeros(Shape{s.B, s.H, s.T, first + s.S});
  for (int64_t b = 0; b < s.B; ++b) {
    for (int64_t h = 0; h < s.H; ++h) {
      const Keys keys = keys_of(b, h / s.group());
      kernel::attention_pattern(s.head(o, b, h, first), s.queries(b, h), s.q.stride(), keys.panels, kept.at(b, h),
                                p.row((b * s.H + h) * s.T), p.stride());
    }
  }
  return p;
}

// keys_of(b, g) gives what to read; called once by each task, and again for a watcher.
template <class KeysOf>
Tensor forward(Kept& kept, const AttentionOptions& o, bool recording, int64_t first, const KeysOf& keys_of) {
  const AttentionSides& s = kept.sides;
  if (recording || o.look) {
    kept.row_max = Buffer(s.B * s.H * s.T);
    kept.row_inverse = Buffer(s.B * s.H * s.T);
    if (recording && s.S <= kernel::kKeyBlock)
      kept.pattern = Tensor(Shape{s.B * s.H * s.T * kernel::pattern_stride(s.S)});
  }
  Tensor y(Shape{s.B, s.T, s.H * s.D});
  const int64_t work = s.T * (first + s.S) * s.D * s.group();
  parallel_for(s.B * s.G, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   forward_heads(kept, o, y, {i / s.G, i % s.G, first}, keys_of(i / s.G, i % s.G));
               });
  return y;
}

// A place for gradients that are all added to it: x's own if nothing is there yet.
struct Contribution {
  explicit Contribution(const Tensor& x_) : x(x_), slot(x_.grad()) {
    const bool elsewhere = !slot || slot.accumulate;
    if (elsewhere) own = Tensor::zeros(x.shape());
    to = elsewhere ? GradientSlot{own.data(), own.stride(), true} : slot.cleared(x.rows());
  }
  void finish() const {
    if (slot && slot.accumulate) kernel::add_rows(x.rows(), x.channels(), to.data, to.stride, slot.data, slot.stride);
  }
  Tensor x, own;
  GradientSlot slot, to;
};

void backward(const Kept& kept, const AttentionOptions& o, const Tensor& y, const SideGradients& d) {
  const AttentionSides& s = kept.sides;
  parallel_for(s.B * s.G, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) backward_heads(kept, o, y, d, i / s.G, i % s.G);
  });
}

void check_cache(const AttentionSides& s, const AttentionOptions& o, bool recording) {
  const KeyValues& cache = *o.cache;
  BARY_CHECK(!recording, "attention: a cache has no gradient; use it outside a tape");
  BARY_CHECK(cache.B == s.B && cache.heads == s.G && cache.D == s.D,
             "attention: the cache is for {} x {} heads of {}, the call for {} x {} of {}", cache.B, cache.heads,
             cache.D, s.B, s.G, s.D);
  BARY_CHECK(cache.length + s.T <= cache.capacity,
             "attention: {} positions held and {} more, the cache has room for {}", cache.length, s.T, cache.capacity);
  BARY_CHECK(o.mask != Mask::full && o.lengths.empty(),
             "attention: a cache needs a causal mask and sequences of one length");
  for (int64_t p : o.prefix)  // its rows see all of it, so it cannot come in pieces
    BARY_CHECK(
        p <= (cache.length == 0 ? s.T : cache.length),
        "attention: a prefix of {} positions, the cache holds {} and {} more come; hand the whole of a prefix in at "
        "once, first",
        p, cache.length, s.T);
}

}  // namespace

Tensor attention(const Tensor& qkv, const AttentionOptions& o) {
  auto kept = std::make_shared<Kept>();
  kept->sides = self_sides("attention", qkv, o);
  AttentionSides& s = kept->sides;
  const bool recording = Tape::active() && qkv.needs_grad();
  if (o.cache) check_cache(s, o, recording);
  const int64_t first = o.cache ? o.cache->length : 0;
  if (o.rotary) s.q = s.kv = turned(s, *o.rotary, first);
  Tensor y = forward(*kept, o, recording, first, [&](int64_t b, int64_t g) {
    if (!o.cache) return packed(s, b, g);
    append(s, *o.cache, b, g);
    return held(*o.cache, b * s.G + g);
  });
  if (o.look)
    o.look(watched_pattern(*kept, o, first, [&](int64_t b, int64_t g) {
      return o.cache ? held(*o.cache, b * s.G + g) : packed(s, b, g);
    }));
  if (o.cache) o.cache->length += s.T;
  record(
      y,
      [=] {
        const AttentionSides& sides = kept->sides;
        // In place where nothing is there yet: rotation turns back what this op contributes, nothing else.
        const Contribution d(qkv);
        backward(*kept, o, y, {d.to, d.to});
        for (int64_t b = 0; o.rotary && b < sides.B; ++b)
          kernel::rotate_rows(sides.T, sides.H + sides.G, sides.D, d.to.data + b * sides.T * d.to.stride, d.to.stride,
                              o.rotary->cosines.data(), o.rotary->sines.data(), -1);
        d.finish();
      },
      qkv);
  return y;
}

Tensor cross_attention(const Tensor& q, const Tensor& kv, const AttentionOptions& o) {
  auto kept = std::make_shared<Kept>();
  kept->sides = cross_sides("cross_attention", q, kv, o);
  const AttentionSides& s = kept->sides;
  auto keys_of = [&](int64_t b, int64_t g) { return packed(s, b, g); };
  Tensor y = forward(*kept, o, Tape::active() && (q.needs_grad() || kv.needs_grad()), 0, keys_of);
  if (o.look) o.look(watched_pattern(*kept, o, 0, keys_of));
  record(
      y,
      [=] {
        const Contribution dq(q), dkv(kv);
        backward(*kept, o, y, {dq.to, dkv.to});
        dq.finish(), dkv.finish();
      },
      q, kv);
  return y;
}

KeyValues memorise(const Tensor& kv, int64_t kv_heads) {
  BARY_CHECK(kv.shape().rank() == 3 && kv_heads > 0 && kv.channels() % (2 * kv_heads) == 0,
             "memorise: keys and values are {}, which does not divide into 2 x {} heads", kv.shape().str(), kv_heads);
  const int64_t M = kv.dim(0), S = kv.dim(1), D = kv.channels() / (2 * kv_heads);
  KeyValues memory(M, kv_heads, D, S);
  AttentionSides s{M, 0, S, kv_heads, kv_heads, D, {}, kv, 0, kv_heads * D, true, {}};
  parallel_for(M * kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / kv_heads, g = i % kv_heads;
      kernel::pack_keys(s.k(b, g), kv.stride(), S, D, memory.keys[static_cast<size_t>(i)].data());
      for (int64_t t = 0; t < S; ++t)
        std::copy_n(s.v(b, g) + t * kv.stride(), D,
                    memory.values[static_cast<size_t>(i)].data() + t * memory.value_stride);
    }
  });
  memory.length = S;
  return memory;
}

namespace {

// Sequences that follow each other, each with one query of the same source (a beam's hypotheses), are that source's
// queries: as many rows for one look at its keys. No row's result depends on how many came with it.
Tensor one_query_each(const AttentionSides& s, const AttentionOptions& o, const KeyValues& memory,
                      const std::vector<int64_t>& of) {
  std::vector<int64_t> begins;
  for (int64_t b = 0; b < s.B; ++b)
    if (b == 0 || of[static_cast<size_t>(b)] != of[static_cast<size_t>(b) - 1]) begins.push_back(b);
  begins.push_back(s.B);
  const auto runs = static_cast<int64_t>(begins.size()) - 1;
  Tensor y(Shape{s.B, 1, s.H * s.D});
  const int64_t work = s.B / std::max<int64_t>(runs, 1) * s.S * s.D * s.group();
  parallel_for(runs * s.G, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t b = begins[static_cast<size_t>(i / s.G)], g = i % s.G;
                   const Keys keys = held(memory, of[static_cast<size_t>(b)] * memory.heads + g);
                   for (int64_t h = g * s.group(); h < (g + 1) * s.group(); ++h) {
                     kernel::AttentionHead head = s.head(o, b, h, 0);
                     head.T = begins[static_cast<size_t>(i / s.G) + 1] - b;
                     kernel::attention_forward(head, s.queries(b, h), s.q.stride(), keys.panels, keys.values,
                                               keys.value_stride, y.row(b) + h * s.D, y.stride(), {});
                   }
                 }
               });
  return y;
}

}  // namespace

Tensor cross_attention(const Tensor& q, const KeyValues& memory, const std::vector<int64_t>& of,
                       const AttentionOptions& o) {
  refuse_gradient("cross_attention over a memory", q);
  Kept kept;
  kept.sides = memory_sides("cross_attention", q, memory, of, o);
  if (kept.sides.T == 1 && !o.look && o.dropout.p == 0) return one_query_each(kept.sides, o, memory, of);
  auto keys_of = [&](int64_t b, int64_t g) { return held(memory, of[static_cast<size_t>(b)] * memory.heads + g); };
  Tensor y = forward(kept, o, false, 0, keys_of);
  if (o.look) o.look(watched_pattern(kept, o, 0, keys_of));
  return y;
}

}  // namespace bary
