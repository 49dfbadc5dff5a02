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

// Where a row of p or ds over one block ends: zeros up to there, for whole vectors past the last key
HWY_INLINE int64_t row_end(const AttentionHead& h, int64_t block) {
  return std::min(ceil16(std::min(block + kKeyBlock, h.S)) + 16, block + kScoreStride);
}

// Scores of query t over the keys of its tile become p, by the row's statistics; zeros around them
HWY_INLINE void pattern_row(const AttentionHead& h, int64_t t, const AttentionKept& kept, const KeyRange& keys,
                            int64_t block, float* p) {
  const RowMask m = row_mask(h, t);
  const int64_t end = row_end(h, block);
  V16 base = set1(kept.row_max[t]), inverse = set1(kept.row_inverse[t]);
  float* row = p - block;
  int64_t j = block;
  for (; j < std::min(keys.low, end); j += 16) store(zero(), row + j);
  for (; j < keys.high; j += 16) {
    bool seen = j < m.high && j + 16 > m.low;
    V16 x = seen ? exp(masked_score(load(row + j), m, j) - base) * inverse : zero();
    store(x, row + j);
  }
  for (; j < end; j += 16) store(zero(), row + j);
}

// g_t . v_j over the keys of its tile become ds, zeros around them
HWY_INLINE void gradient_row(const AttentionHead& h, int64_t t, const KeyRange& keys, int64_t block, const float* p,
                             float delta, float* row) {
  const int64_t from = keys.low - block, to = keys.high - block, end = row_end(h, block) - block;
  if (from >= to) return clear_between(row, 0, end);
  if (h.dropout.p > 0) {
    uint32_t key = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(h.first + t));
    dropout_row(row + from, row + from, to - from, key, static_cast<uint32_t>(keys.low), h.dropout.p);
  }
  clear_between(row, 0, from);
  V16 d = set1(delta), scale = set1(h.scale);
  for (int64_t j = from; j < ceil16(to); j += 16) store(load(p + j) * (load(row + j) - d) * scale, row + j);
  clear_between(row, ceil16(to), end);
}

// dq of rows t .. t+R-1 += ds k over some keys
template <int R>
HWY_NOINLINE void query_tile(const AttentionInputs& in, int64_t D, const KeyRange& keys, const float* ds, float* dq,
                             int64_t ld) {
  for (int64_t c = 0; c < D; c += kPanel) {
    int64_t left = D - c;
    with_constant<kVectors>((std::min<int64_t>(kPanel, left) + 15) / 16, [&](auto nv) HWY_ATTR {
      constexpr int NV = decltype(nv)::value;
      float* to = dq + c;
      Tile<R, NV> tile;
      BARY_UNROLL for (int r = 0; r < R; ++r) {
        BARY_UNROLL for (int j = 0; j < NV; ++j) tile.v[r][j] = load_n(to + r * ld + 16 * j, left - 16 * j);
      }
      int64_t last = std::min<int64_t>(left - 16 * (NV - 1), 16);
      const float* k = in.k + keys.low * in.ldk + c;
      if (last == 16) {
        multiply(tile, keys.high - keys.low, ds, kScoreStride, 1, k, in.ldk);
      } else {
        multiply<R, NV, true>(tile, keys.high - keys.low, ds, kScoreStride, 1, k, in.ldk, last);
      }
      BARY_UNROLL for (int r = 0; r < R; ++r) {
        BARY_UNROLL for (int j = 0; j < NV; ++j) store_n(tile.v[r][j], to + r * ld + 16 * j, left - 16 * j);
      }
    });
  }
}

void Pattern(const AttentionHead& h, const float* q, int64_t ldq, const float* panels, const AttentionKept& kept,
             float* pattern, int64_t ld) {
  HWY_ALIGN float p[kBand * kScoreStride];
  for (int64_t t0 = 0; t0 < h.T; t0 += kBand) {
    const int64_t t1 = std::min(t0 + kBand, h.T);
    for (int64_t block = 0; block < h.S; block += kKeyBlock) {
      score_band(h, q, ldq, {panels, 0}, block, t0, t1, p);
      const int64_t n = std::min(kKeyBlock, h.S - block);
      each_tile(t0, t1, [&](auto count, int64_t tile) HWY_ATTR {
        const KeyRange keys = tile_part(h, tile, decltype(count)::value, block);
        for (int64_t t = tile; t < tile + decltype(count)::value; ++t) {
          float* row = p + (t - t0) * kScoreStride;
          pattern_row(h, t, kept, keys, block, row);
          std::memcpy(pattern + t * ld + block, row, static_cast<size_t>(n) * sizeof(float));
        }
      });
    }
  }
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

// ds of queries [t0, t1), at most kBand, over one block of keys, and dq += ds k. p and ds begin at row t0.
HWY_NOINLINE void backward_band(const AttentionHead& h, const AttentionInputs& in, const AttentionKept& kept,
                                const AttentionGradient& g, const float* key_space, int64_t t0, int64_t t1,
                                int64_t block, float* p, int64_t ldp, const float* delta, float* ds) {
  if (!kept.pattern) score_band(h, in.q, in.ldq, {key_space, block}, block, t0, t1, p);
  score_band(h, in.dout, in.ldo, {key_space + kKeyBlock * h.D, block}, block, t0, t1, ds);
  each_tile(t0, t1, [&](auto count, int64_t tile) HWY_ATTR {
    const KeyRange keys = tile_part(h, tile, decltype(count)::value, block);
    for (int64_t t = tile; t < tile + decltype(count)::value; ++t) {
      float* row = p + (t - t0) * ldp;
      if (!kept.pattern) pattern_row(h, t, kept, keys, block, row);
      gradient_row(h, t, keys, block, row, delta[t - t0], ds + (t - t0) * kScoreStride);
    }
  });
  each_part(h, block, t0, t1, [&](auto count, int64_t t, const KeyRange& part) HWY_ATTR {
    query_tile<decltype(count)::value>(in, h.D, part, ds + (t - t0) * kScoreStride + part.low - block, g.dq + t * g.ldq,
                                       g.ldq);
  });
}

// What queries [t0, t1) and one block of keys contribute.
HWY_INLINE void backward_block(const AttentionHead& h, const AttentionInputs& in, const AttentionKept& kept,
                               const AttentionGradient& g, const Scratch& x, int64_t t0, int64_t t1, int64_t block) {
  const KeyRange keys = tile_keys(h, t0, t1 - t0);
  float* p = x.recomputed;
  int64_t ldp = kScoreStride;
  if (kept.pattern) {
    p = kept.pattern + t0 * pattern_stride(h.S) + block;
    ldp = pattern_stride(h.S);
  }
  output_products(h, in, t0, t1, x.delta);
  for (int64_t t = t0; t < t1; t += kBand) {
    backward_band(h, in, kept, g, x.keys, t, std::min(t + kBand, t1), block, p + (t - t0) * ldp, ldp, x.delta + t - t0,
                  x.ds + (t - t0) * kScoreStride);
  }
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
  const RowStart start{h.causal && block >= h.prefix, block - h.first - t0};
  gemm_transposed(n, h.D, rows, p, ldp, in.dout + t0 * in.ldo, in.ldo, g.dv + block * g.ldk, g.ldk, start);
  gemm_transposed(n, h.D, rows, x.ds, kScoreStride, in.q + t0 * in.ldq, in.ldq, g.dk + block * g.ldk, g.ldk, start);
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
