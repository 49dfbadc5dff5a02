// SPDX-License-Identifier: Apache-2.0
// Gradients of attention in tiles of 256 queries by 256 keys, with p recomputed from each row's maximum and sum unless
// it was kept. With g = d out, delta_t = g_t . out_t (Dao et al. 2022, appendix B):
//   dv_j = sum_t p_tj g_t,  ds_tj = p_tj (g_t . v_j - delta_t),  dq_t = scale sum_j ds_tj k_j,  dk_j = scale sum_t
//   ds_tj q_t
#include <algorithm>

#include "bary/kernel/attention.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/attention_backward.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "bary/kernel/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// p of rows t .. t+R-1 over the keys of one block, from the row statistics
template <int R>
HWY_INLINE void pattern_tile(const AttentionHead& h, int64_t t, const float* q, int64_t ldq, KeyPanels panels,
                             const AttentionKept& kept, int64_t block, float* p, int64_t ldp) {
  HWY_ALIGN float s[R * kScoreStride];
  int64_t from = block, to = std::min(block + kKeyBlock, h.S);
  KeyRange keys = tile_keys(h, t, R);
  from = std::max(from, keys.low / kPanel * kPanel);
  to = std::min(to, keys.high);
  int64_t end = std::min(ceil16(std::min(block + kKeyBlock, h.S)) + 16, block + kScoreStride);
  if (from < to) score_tile<R>(h.D, q + t * ldq, ldq, panels, block, from, to, s);
  for (int r = 0; r < R; ++r) {
    RowMask m = row_mask(h, t + r);
    V16 base = set1(kept.row_max[t + r]), inverse = set1(kept.row_inverse[t + r]);
    float* row = p + r * ldp - block;
    int64_t j = block;
    for (; j < std::min(from, end); j += 16) store(zero(), row + j);
    for (; j < to; j += 16) {
      bool seen = j < m.high && j + 16 > m.low;
      V16 x = seen ? exp(masked_score(load(s + r * kScoreStride + j - block), m, j) - base) * inverse : zero();
      store(x, row + j);
    }
    for (; j < end; j += 16) store(zero(), row + j);
  }
}

// ds of rows t .. t+R-1 over one block into ds (row stride kScoreStride), then dq += ds k
template <int R>
HWY_NOINLINE void gradient_tile(const AttentionHead& h, const AttentionInputs& in, int64_t t, int64_t block,
                                const float* value_panels, const float* p, int64_t ldp, const float* delta, float* ds,
                                const AttentionGradient& grad) {
  KeyRange keys = tile_keys(h, t, R);
  int64_t from = std::max(block, keys.low / kPanel * kPanel), to = std::min(block + kKeyBlock, keys.high);
  int64_t end = std::min(ceil16(std::min(block + kKeyBlock, h.S)) + 16, block + kScoreStride) - block;
  if (from >= to) {
    for (int r = 0; r < R; ++r) clear_between(ds + r * kScoreStride, 0, end);
    return;
  }
  score_tile<R>(h.D, in.dout + t * in.ldo, in.ldo, {value_panels, block}, block, from, to, ds);
  for (int r = 0; r < R; ++r) {
    float* row = ds + r * kScoreStride;
    if (h.dropout.p > 0) {
      uint32_t key = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(h.first + t + r));
      dropout_row(row + from - block, row + from - block, to - from, key, static_cast<uint32_t>(from), h.dropout.p);
    }
    clear_between(row, 0, from - block);
    V16 d = set1(delta[r]), scale = set1(h.scale);
    for (int64_t j = from - block; j < ceil16(to) - block; j += 16) {
      store(load(p + r * ldp + j) * (load(row + j) - d) * scale, row + j);
    }
    clear_between(row, ceil16(to) - block, end);
  }
  for (int64_t c = 0; c < h.D; c += kPanel) {
    int64_t left = h.D - c;
    with_constant<kVectors>((std::min<int64_t>(kPanel, left) + 15) / 16, [&](auto nv) HWY_ATTR {
      constexpr int NV = decltype(nv)::value;
      float* dq = grad.dq + t * grad.ld + c;
      Tile<R, NV> tile;
      for (int r = 0; r < R; ++r)
        for (int j = 0; j < NV; ++j) tile.v[r][j] = load_n(dq + r * grad.ld + 16 * j, left - 16 * j);
      int64_t last = std::min<int64_t>(left - 16 * (NV - 1), 16);
      const float* k = in.k + from * in.ldk + c;
      if (last == 16) {
        multiply(tile, to - from, ds + from - block, kScoreStride, 1, k, in.ldk);
      } else {
        multiply<R, NV, true>(tile, to - from, ds + from - block, kScoreStride, 1, k, in.ldk, last);
      }
      for (int r = 0; r < R; ++r)
        for (int j = 0; j < NV; ++j) store_n(tile.v[r][j], dq + r * grad.ld + 16 * j, left - 16 * j);
    });
  }
}

template <class F>
HWY_INLINE void each_tile(int64_t begin, int64_t end, const F& f) {
  int64_t t = begin;
  for (; t + kRows <= end; t += kRows) f(Int<kRows>(), t);
  if (t < end) with_constant<kRows - 1>(end - t, [&](auto count) HWY_ATTR { f(count, t); });
}

void Pattern(const AttentionHead& h, const float* q, int64_t ldq, const float* panels, const AttentionKept& kept,
             float* pattern, int64_t ld) {
  HWY_ALIGN float p[kRows * kScoreStride];
  each_tile(0, h.T, [&](auto count, int64_t t) HWY_ATTR {
    constexpr int R = decltype(count)::value;
    for (int64_t block = 0; block < h.S; block += kKeyBlock) {
      pattern_tile<R>(h, t, q, ldq, {panels, 0}, kept, block, p, kScoreStride);
      int64_t n = std::min(kKeyBlock, h.S - block);
      for (int r = 0; r < R; ++r) std::memcpy(pattern + (t + r) * ld + block, p + r * kScoreStride, n * sizeof(float));
    }
  });
}

struct Scratch {  // of Backward
  explicit Scratch(float* p)
      : ds(p), recomputed(ds + kTile), dropped(recomputed + kTile), delta(dropped + kTile), keys(delta + kKeyBlock) {}
  static constexpr int64_t kTile = kKeyBlock * kScoreStride;
  float *ds, *recomputed, *dropped, *delta, *keys;  // keys: panels of a block of keys, then of its values
};

HWY_INLINE void output_products(const AttentionHead& h, const AttentionInputs& in, int64_t t0, int64_t t1,
                                float* delta) {
  for (int64_t t = t0; t < t1; ++t) {
    V16 s = zero();
    for (int64_t c = 0; c < h.D; c += 16) {
      s = fma(load_n(in.dout + t * in.ldo + c, h.D - c), load_n(in.out + t * in.ldo + c, h.D - c), s);
    }
    delta[t - t0] = sum_lanes(s);
  }
}

// What queries [t0, t1) and one block of keys contribute.
HWY_INLINE void backward_block(const AttentionHead& h, const AttentionInputs& in, const AttentionKept& kept,
                               const AttentionGradient& g, const Scratch& x, int64_t t0, int64_t t1, int64_t block) {
  const KeyRange keys = tile_keys(h, t0, t1 - t0);
  const float* p = x.recomputed;
  int64_t ldp = kScoreStride;
  if (kept.pattern) {
    p = kept.pattern + t0 * pattern_stride(h.S) + block;
    ldp = pattern_stride(h.S);
  }
  output_products(h, in, t0, t1, x.delta);
  each_tile(t0, t1, [&](auto count, int64_t t) HWY_ATTR {
    constexpr int R = decltype(count)::value;
    float* mine = x.recomputed + (t - t0) * kScoreStride;
    if (!kept.pattern) pattern_tile<R>(h, t, in.q, in.ldq, {x.keys, block}, kept, block, mine, kScoreStride);
    gradient_tile<R>(h, in, t, block, x.keys + kKeyBlock * h.D, p + (t - t0) * ldp, ldp, x.delta + t - t0,
                     x.ds + (t - t0) * kScoreStride, g);
  });
  const int64_t rows = t1 - t0, n = std::min(block + kKeyBlock, keys.high) - block;
  if (h.dropout.p > 0) {
    for (int64_t t = t0; t < t1; ++t) {
      uint32_t key = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(h.first + t));
      dropout_row(p + (t - t0) * ldp, x.dropped + (t - t0) * kScoreStride, n, key, static_cast<uint32_t>(block),
                  h.dropout.p);
    }
    p = x.dropped;
    ldp = kScoreStride;
  }
  const RowStart start{h.causal, block - h.first - t0};
  gemm_transposed(n, h.D, rows, p, ldp, in.dout + t0 * in.ldo, in.ldo, g.dv + block * g.ld, g.ld, start);
  gemm_transposed(n, h.D, rows, x.ds, kScoreStride, in.q + t0 * in.ldq, in.ldq, g.dk + block * g.ld, g.ld, start);
}

// Blocks of keys outside: the panels of one are all that is ever packed. The sums keep their order, queries for dk and
// dv, keys for dq.
void Backward(const AttentionHead& h, const AttentionInputs& in, const AttentionKept& kept, const AttentionGradient& g,
              float* scratch) {
  const Scratch x(scratch);
  for (int64_t block = 0; block < h.S; block += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, h.S - block);
    if (!kept.pattern) key_panels(in.k + block * in.ldk, in.ldk, keys, h.D, x.keys);
    key_panels(in.v + block * in.ldk, in.ldk, keys, h.D, x.keys + kKeyBlock * h.D);
    for (int64_t t0 = 0; t0 < h.T; t0 += kKeyBlock) {
      const int64_t t1 = std::min(t0 + kKeyBlock, h.T);
      const KeyRange seen = tile_keys(h, t0, t1 - t0);
      if (block < seen.high && block + kKeyBlock > seen.low) backward_block(h, in, kept, g, x, t0, t1, block);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(Pattern);
HWY_EXPORT(Backward);

int64_t attention_backward_scratch(int64_t D) {
  return 3 * kKeyBlock * (kKeyBlock + 16) + kKeyBlock + 2 * kKeyBlock * D;
}
void attention_pattern(const AttentionHead& head, const float* q, int64_t ldq, const float* key_panels,
                       const AttentionKept& kept, float* pattern, int64_t ld) {
  HWY_DYNAMIC_DISPATCH(Pattern)(head, q, ldq, key_panels, kept, pattern, ld);
}
void attention_backward(const AttentionHead& head, const AttentionInputs& in, const AttentionKept& kept,
                        const AttentionGradient& gradient, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Backward)(head, in, kept, gradient, scratch);
}

}  // namespace bary::kernel
#endif
