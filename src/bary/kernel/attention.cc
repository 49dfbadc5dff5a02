// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/attention.h"

#include <algorithm>

#include "bary/kernel/gemm.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/attention.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "bary/kernel/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

void PackKeys(const float* k, int64_t ldk, int64_t S, int64_t D, float* panels) { key_panels(k, ldk, S, D, panels); }

void AppendKey(const float* key, int64_t s, int64_t D, float* panels) {
  int64_t j = s % kPanel;
  float* panel = panels + (s - j) * D;
  if (j == 0) std::fill(panel, panel + kPanel * D, 0.0f);
  for (int64_t d = 0; d < D; ++d) panel[d * kPanel + j] = key[d];
}

// Online softmax over one block of a row: scores become weights exp(s - max) in place.
struct RowState {
  float max, sum, rescale;
};
HWY_INLINE void soften_row(const RowMask& m, int64_t block, int64_t from, int64_t to, float* s, RowState& state) {
  int64_t low = std::max(m.low, block), high = std::min(m.high, block + kKeyBlock);
  state.rescale = 1;
  if (low >= high) return clear_between(s, from - block, ceil16(to) - block);
  int64_t begin = floor16(low), end = ceil16(high);
  V16 top = set1(-HUGE_VALF);
  for (int64_t j = begin; j < end; j += 16) {
    V16 x = masked_score(load(s + j - block), m, j);
    store(x, s + j - block);
    top = max(x, top);
  }
  float old = state.max;
  state.max = std::max(old, max_lane(top));
  V16 base = set1(state.max), sum = zero();
  for (int64_t j = begin; j < end; j += 16) {
    V16 e = exp(load(s + j - block) - base);
    sum = sum + e;
    store(e, s + j - block);
  }
  if (old != -HUGE_VALF) {
    HWY_ALIGN float lanes[16];
    store(exp(set1(old) - base), lanes);
    state.rescale = lanes[0];
  }
  state.sum = state.sum * state.rescale + sum_lanes(sum);
  clear_between(s, from - block, begin - block);
  clear_between(s, end - block, ceil16(to) - block);
}

enum class Start { zero, rescale, resume };

// out (R, D) += s v over some keys: from zero, from what earlier blocks left, rescaled, or from earlier keys of this
// block; the last keys of a row also divide by its sum
template <int R, int NV>
HWY_INLINE void mix_values(int64_t D, int64_t column, const float* s, int64_t keys, const float* v, int64_t ldv,
                           float* out, int64_t ldo, Start start, const RowState* state, bool last_keys) {
  Tile<R, NV> t = zero_tile<R, NV>();
  int64_t left = D - column;
  if (start != Start::zero) {
    BARY_UNROLL for (int r = 0; r < R; ++r) {
      BARY_UNROLL for (int j = 0; j < NV; ++j) {
        V16 held = load_n(out + r * ldo + column + 16 * j, left - 16 * j);
        t.v[r][j] = start == Start::rescale ? held * set1(state[r].rescale) : held;
      }
    }
  }
  int64_t last = std::min<int64_t>(left - 16 * (NV - 1), 16);
  if (last == 16) {
    multiply(t, keys, s, kScoreStride, 1, v + column, ldv);
  } else {
    multiply<R, NV, true>(t, keys, s, kScoreStride, 1, v + column, ldv, last);
  }
  BARY_UNROLL for (int r = 0; r < R; ++r) {
    V16 inverse = set1(last_keys ? 1.0f / state[r].sum : 1.0f);
    BARY_UNROLL for (int j = 0; j < NV; ++j) {
      V16 y = t.v[r][j];
      // + 0: a sum flushed to -0 must not depend on how many zero weights were added after it
      if (last_keys) y = fma(y, inverse, zero());
      store_n(y, out + r * ldo + column + 16 * j, left - 16 * j);
    }
  }
}

template <int R>
HWY_NOINLINE void mix_tile(int64_t D, const float* s, int64_t keys, const float* v, int64_t ldv, float* out,
                           int64_t ldo, Start start, const RowState* state, bool last_keys) {
  for (int64_t c = 0; c < D; c += kPanel) {
    with_constant<kVectors>((std::min<int64_t>(kPanel, D - c) + 15) / 16, [&](auto nv) HWY_ATTR {
      mix_values<R, decltype(nv)::value>(D, c, s, keys, v, ldv, out, ldo, start, state, last_keys);
    });
  }
}

// p of one row over a block of keys, for the backward pass of short texts
HWY_INLINE void keep_pattern(const KeyRange& keys, int64_t block, const float* row, float inverse, int64_t end,
                             float* p) {
  V16 scale = set1(inverse);
  clear_between(p, 0, keys.low);
  for (int64_t j = keys.low; j < ceil16(keys.high); j += 16) store(load(row + j - block) * scale, p + j);
  clear_between(p, ceil16(keys.high), end);
}

// Queries [t0, t1), at most kBand
HWY_NOINLINE void forward_band(const AttentionHead& h, int64_t t0, int64_t t1, const float* q, int64_t ldq,
                               const float* panels, const float* v, int64_t ldv, float* out, int64_t ldo,
                               const AttentionKept& kept) {
  HWY_ALIGN float s[kBand * kScoreStride];
  RowState state[kBand];
  for (int64_t t = t0; t < t1; ++t) state[t - t0] = {-HUGE_VALF, 0, 1};
  const KeyRange all = tile_keys(h, t0, t1 - t0);
  for (int64_t block = all.low / kKeyBlock * kKeyBlock; block < all.high; block += kKeyBlock) {
    score_band(h, q, ldq, {panels, 0}, block, t0, t1, s);
    each_tile(t0, t1, [&](auto count, int64_t tile) HWY_ATTR {
      constexpr int R = decltype(count)::value;
      const KeyRange keys = tile_part(h, tile, R, block);
      if (keys.low >= keys.high) return;
      for (int64_t t = tile; t < tile + R; ++t) {
        float* row = s + (t - t0) * kScoreStride;
        const RowMask mask = row_mask(h, t);
        soften_row(mask, block, keys.low, keys.high, row, state[t - t0]);
        if (kept.pattern) {
          const int64_t stride = pattern_stride(h.S);
          // the backward pass skips what a causal mask hides, unless a prefix breaks the triangle
          const int64_t end = h.prefix ? stride : std::min(ceil16(keys.high) + 16, stride);
          keep_pattern(keys, block, row, 1.0f / state[t - t0].sum, end, kept.pattern + t * stride);
        }
        if (h.dropout.p > 0) {
          uint32_t key = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(mask.position));
          float* seen = row + keys.low - block;
          dropout_row(seen, seen, keys.high - keys.low, key, static_cast<uint32_t>(keys.low), h.dropout.p);
        }
      }
    });
    each_part(h, block, t0, t1, [&](auto count, int64_t t, const KeyRange& part) HWY_ATTR {
      constexpr int R = decltype(count)::value;
      const KeyRange keys = tile_keys(h, t, R), here = tile_part(h, t, R, block);
      const bool first = block <= keys.low;
      const Start start = part.low > here.low ? Start::resume : first ? Start::zero : Start::rescale;
      mix_tile<R>(h.D, s + (t - t0) * kScoreStride + part.low - block, part.high - part.low, v + part.low * ldv, ldv,
                  out + t * ldo, ldo, start, state + (t - t0), part.high == keys.high);
    });
  }
  for (int64_t t = t0; t < t1 && kept.row_max; ++t) {
    kept.row_max[t] = state[t - t0].max;
    kept.row_inverse[t] = 1.0f / state[t - t0].sum;
  }
}

void Forward(const AttentionHead& h, const float* q, int64_t ldq, const float* panels, const float* v, int64_t ldv,
             float* out, int64_t ldo, const AttentionKept& kept) {
  for (int64_t t = 0; t < h.T; t += kBand)
    forward_band(h, t, std::min(t + kBand, h.T), q, ldq, panels, v, ldv, out, ldo, kept);
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(PackKeys);
HWY_EXPORT(AppendKey);
HWY_EXPORT(Forward);

int64_t key_panel_size(int64_t S, int64_t D) {
  int64_t w = panel_width();
  return (S + w - 1) / w * w * D;
}
void pack_keys(const float* k, int64_t ldk, int64_t S, int64_t D, float* panels) {
  HWY_DYNAMIC_DISPATCH(PackKeys)(k, ldk, S, D, panels);
}
void append_key(const float* key, int64_t s, int64_t D, float* panels) {
  HWY_DYNAMIC_DISPATCH(AppendKey)(key, s, D, panels);
}
void attention_forward(const AttentionHead& head, const float* q, int64_t ldq, const float* key_panels, const float* v,
                       int64_t ldv, float* out, int64_t ldo, const AttentionKept& kept) {
  HWY_DYNAMIC_DISPATCH(Forward)(head, q, ldq, key_panels, v, ldv, out, ldo, kept);
}

}  // namespace bary::kernel
#endif
