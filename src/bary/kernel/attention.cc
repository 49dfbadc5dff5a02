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

// out (R, D) = rescale out + s v over keys [from, to) of the block; the last block of a row also divides by its sum
template <int R, int NV>
HWY_INLINE void mix_values(int64_t D, int64_t column, const float* s, int64_t keys, const float* v, int64_t ldv,
                           float* out, int64_t ldo, bool first, const RowState* state, bool last_block) {
  Tile<R, NV> t = zero_tile<R, NV>();
  int64_t left = D - column;
  if (!first) {
    BARY_UNROLL for (int r = 0; r < R; ++r) {
      BARY_UNROLL for (int j = 0; j < NV; ++j) {
        t.v[r][j] = load_n(out + r * ldo + column + 16 * j, left - 16 * j) * set1(state[r].rescale);
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
    V16 inverse = set1(last_block ? 1.0f / state[r].sum : 1.0f);
    BARY_UNROLL for (int j = 0; j < NV; ++j) {
      V16 y = t.v[r][j];
      // + 0: a sum flushed to -0 must not depend on how many zero weights were added after it
      if (last_block) y = fma(y, inverse, zero());
      store_n(y, out + r * ldo + column + 16 * j, left - 16 * j);
    }
  }
}

template <int R>
HWY_NOINLINE void forward_tile(const AttentionHead& h, int64_t t, const float* q, int64_t ldq, const float* panels,
                               const float* v, int64_t ldv, float* out, int64_t ldo, const AttentionKept& kept) {
  HWY_ALIGN float s[R * kScoreStride];
  RowState state[R];
  RowMask mask[R];
  for (int r = 0; r < R; ++r) {
    state[r] = {-HUGE_VALF, 0, 1};
    mask[r] = row_mask(h, t + r);
  }
  KeyRange keys = tile_keys(h, t, R);
  bool first = true;
  for (int64_t block = keys.low / kKeyBlock * kKeyBlock; block < keys.high; block += kKeyBlock) {
    int64_t from = std::max(block, keys.low / kPanel * kPanel), to = std::min(block + kKeyBlock, keys.high);
    score_tile<R>(h.D, q + t * ldq, ldq, {panels, 0}, block, from, to, s);
    for (int r = 0; r < R; ++r) {
      float* row = s + r * kScoreStride;
      soften_row(mask[r], block, from, to, row, state[r]);
      if (kept.pattern) {
        float* p = kept.pattern + (t + r) * pattern_stride(h.S);
        V16 inverse = set1(1.0f / state[r].sum);
        clear_between(p, 0, from);
        for (int64_t j = from; j < ceil16(to); j += 16) store(load(row + j - block) * inverse, p + j);
        clear_between(p, ceil16(to), std::min(ceil16(to) + 16, pattern_stride(h.S)));
      }
      if (h.dropout.p > 0) {
        uint32_t key = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(mask[r].position));
        dropout_row(row + from - block, row + from - block, to - from, key, static_cast<uint32_t>(from), h.dropout.p);
      }
    }
    bool last_block = block + kKeyBlock >= keys.high;
    for (int64_t c = 0; c < h.D; c += kPanel) {
      with_constant<kVectors>((std::min<int64_t>(kPanel, h.D - c) + 15) / 16, [&](auto nv) HWY_ATTR {
        mix_values<R, decltype(nv)::value>(h.D, c, s + from - block, to - from, v + from * ldv, ldv, out + t * ldo, ldo,
                                           first, state, last_block);
      });
    }
    first = false;
  }
  for (int r = 0; r < R && kept.row_max; ++r) {
    kept.row_max[t + r] = state[r].max;
    kept.row_inverse[t + r] = 1.0f / state[r].sum;
  }
}

void Forward(const AttentionHead& h, const float* q, int64_t ldq, const float* panels, const float* v, int64_t ldv,
             float* out, int64_t ldo, const AttentionKept& kept) {
  int64_t t = 0;
  for (; t + kRows <= h.T; t += kRows) forward_tile<kRows>(h, t, q, ldq, panels, v, ldv, out, ldo, kept);
  if (t == h.T) return;
  with_constant<kRows - 1>(h.T - t, [&](auto count) HWY_ATTR {
    forward_tile<decltype(count)::value>(h, t, q, ldq, panels, v, ldv, out, ldo, kept);
  });
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
