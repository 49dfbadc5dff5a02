// SPDX-License-Identifier: Apache-2.0
// The parts of attention that both passes share: a tile of scores, and what a mask and a slope do to a row of them.
#if defined(BARY_KERNEL_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BARY_KERNEL_SCORES_INL_H_
#undef BARY_KERNEL_SCORES_INL_H_
#else
#define BARY_KERNEL_SCORES_INL_H_
#endif

#include <algorithm>

#include "bary/kernel/attention.h"
#include "bary/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

constexpr int64_t kScoreStride = kKeyBlock + 16;

HWY_INLINE void key_panels(const float* k, int64_t ldk, int64_t S, int64_t D, float* panels) {
  for (int64_t p = 0; p < S; p += kPanel, panels += kPanel * D) {
    int64_t n = std::min<int64_t>(kPanel, S - p);
    transpose(k + p * ldk, ldk, n, D, panels, kPanel);
    for (int64_t d = 0; d < D && n < kPanel; ++d) std::fill(panels + d * kPanel + n, panels + (d + 1) * kPanel, 0.0f);
  }
}

struct KeyPanels {
  const float* data;
  int64_t first;  // position of their first key, a multiple of a panel
};

// s[r][j] = a_r . key j for the first 16 NV keys of a panel
template <int R, int NV>
HWY_INLINE void score_tile(int64_t D, const float* a, int64_t lda, const float* panel, float* s) {
  auto t = zero_tile<R, NV>();
  multiply(t, D, a, lda, 1, panel, kPanel);
  BARY_UNROLL for (int r = 0; r < R; ++r) {
    BARY_UNROLL for (int j = 0; j < NV; ++j) store(t.v[r][j], s + r * kScoreStride + 16 * j);
  }
}

struct RowMask {  // of one query: the keys it may see, and its place for the slope
  int64_t low, high, position;
  float scale, slope;
};
HWY_INLINE RowMask row_mask(const AttentionHead& h, int64_t t) {
  return {h.low(t), h.high(t), h.first + t, h.scale, h.slope};
}

// scaled, sloped score of keys at .. at+15; -inf where the row may not look
HWY_INLINE V16 masked_score(V16 s, const RowMask& m, int64_t at) {
  s = s * set1(m.scale);
  if (m.slope != 0) {
    V16 distance = set1(static_cast<float>(m.position - at)) - load(kIota);
    s = fnma(set1(m.slope), abs(distance), s);
  }
  if (at < m.low || at + 16 > m.high) {
    const V16 minus_infinity = set1(-HUGE_VALF);
    V16 lane = load(kIota);
    s = select(lane < set1(static_cast<float>(std::max<int64_t>(m.low - at, 0))), minus_infinity, s);
    s = select(lane < set1(static_cast<float>(std::min<int64_t>(m.high - at, 16))), s, minus_infinity);
  }
  return s;
}

HWY_INLINE int64_t floor16(int64_t x) { return x / 16 * 16; }
HWY_INLINE int64_t ceil16(int64_t x) { return (x + 15) / 16 * 16; }

HWY_INLINE void clear_between(float* s, int64_t from, int64_t to) {  // multiples of 16
  for (; from < to; from += 16) store(zero(), s + from);
}

// The keys that rows t .. t+r-1 see, as one range
struct KeyRange {
  int64_t low, high;
};
HWY_INLINE KeyRange tile_keys(const AttentionHead& h, int64_t t, int64_t r) { return {h.low(t), h.high(t + r - 1)}; }
// and those of one block, from the beginning of a panel; empty if low >= high
HWY_INLINE KeyRange tile_part(const AttentionHead& h, int64_t t, int64_t r, int64_t block) {
  const KeyRange keys = tile_keys(h, t, r);
  return {std::max(block, keys.low / kPanel * kPanel), std::min(block + kKeyBlock, keys.high)};
}

// Queries of a band share keys and values that lie in the first-level cache; a tile alone would fetch all of them from
// the second for every six rows.
constexpr int64_t kBand = 8 * kRows;

// Scores of rows [t0, t1) with the keys of a block, panel by panel; row t0 is the first of s. Of a panel's keys those
// that a tile sees, in whole vectors: the others may not even be there yet.
HWY_INLINE void score_band(const AttentionHead& h, const float* a, int64_t lda, KeyPanels panels, int64_t block,
                           int64_t t0, int64_t t1, float* s) {
  const KeyRange all = tile_part(h, t0, t1 - t0, block);
  for (int64_t p = all.low; p < all.high; p += kPanel) {
    each_tile(t0, t1, [&](auto count, int64_t t) HWY_ATTR {
      constexpr int R = decltype(count)::value;
      const KeyRange keys = tile_part(h, t, R, block);
      if (p < keys.low || p >= keys.high) return;
      const float *rows = a + t * lda, *panel = panels.data + (p - panels.first) * h.D;
      float* to = s + (t - t0) * kScoreStride + p - block;
      if (keys.high - p > kPanel - 16) return score_tile<R, kVectors>(h.D, rows, lda, panel, to);
      with_constant<kVectors>((keys.high - p + 15) / 16,
                              [&](auto nv) HWY_ATTR { score_tile<R, decltype(nv)::value>(h.D, rows, lda, panel, to); });
    });
  }
}

// f(R, t, keys) for the tiles of rows [t0, t1) and parts of a block of keys whose values (or keys, D wide) fit the
// first-level cache, a part for all tiles before the next.
template <class F>
HWY_INLINE void each_part(const AttentionHead& h, int64_t block, int64_t t0, int64_t t1, const F& f) {
  const int64_t step = std::clamp<int64_t>(8192 / h.D / 16 * 16, 16, kKeyBlock);
  for (int64_t part = block; part < block + kKeyBlock; part += step) {
    each_tile(t0, t1, [&](auto count, int64_t t) HWY_ATTR {
      const KeyRange keys = tile_part(h, t, decltype(count)::value, block);
      const KeyRange here{std::max(keys.low, part), std::min(keys.high, part + step)};
      if (here.low < here.high) f(count, t, here);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
