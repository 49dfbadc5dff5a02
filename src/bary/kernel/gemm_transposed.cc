// SPDX-License-Identifier: Apache-2.0
// C += A^T B, the gradient of a weight. The summed dimension runs down the rows of both operands, so a tile reads a few
// columns of many rows, each a line of its own; with a power of two between the rows all of them fall into a few sets
// of the first-level cache. Where a copy is used often enough, both are copied first (measured: docs/performance.md).
#include <algorithm>
#include <cstring>

#include "bary/kernel/gemm.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/gemm_transposed.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "bary/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// One tile of C, whose last vector has `last` columns unless it is whole
template <int MR, int NV, bool Whole>
struct Corner {
  float* c;
  int64_t ldc, last;
  template <class F>
  HWY_INLINE void each(const F& f) const {
    BARY_UNROLL for (int i = 0; i < MR; ++i) { BARY_UNROLL for (int j = 0; j < NV; ++j) f(i, j); }
  }
  HWY_INLINE V16 get(int i, int j) const {
    const float* at = c + i * ldc + 16 * j;
    return !Whole && j == NV - 1 ? load_n(at, last) : load(at);
  }
  HWY_INLINE void set(int i, int j, V16 x) const {
    float* at = c + i * ldc + 16 * j;
    !Whole&& j == NV - 1 ? store_n(x, at, last) : store(x, at);
  }
};

// The rows that pass a tile at once, and how they lie: row k of A at a + k lda (its MR columns side by side), of B at
// b + k ldb. They may be several groups, or some of one whose chain rests elsewhere meanwhile.
struct Rows {
  int64_t begin, end;  // of all r
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
};

// Everything is one chain, which rests in C. Tail: B's last vector is read in place and has only `last` columns.
template <int MR, int NV, bool Tail, bool Whole>
HWY_INLINE void tile_of_one_chain(const Rows& r, int64_t column, const RowStart& start, const Corner<MR, NV, Whole>& c,
                                  const Ahead<NV>& soon) {
  const int64_t skipped = start.causal ? std::clamp(column + start.shift, r.begin, r.end) - r.begin : 0;
  auto t = zero_tile<MR, NV>();
  if (r.begin > 0 || !start.from_zero) c.each([&](int i, int j) HWY_ATTR { t.v[i][j] = c.get(i, j); });
  multiply<MR, NV, Tail>(t, r.end - r.begin - skipped, r.a + skipped * r.lda, 1, r.lda, r.b + skipped * r.ldb, r.ldb,
                         c.last, soon);
  c.each([&](int i, int j) HWY_ATTR { c.set(i, j, t.v[i][j]); });
}

// Each group is a chain. One that has more rows than pass at once rests at `rest` meanwhile.
template <int MR, int NV, bool Tail, bool Whole>
HWY_INLINE void tile_of_groups(const Rows& r, int64_t all, const RowStart& start, const Corner<MR, NV, Whole>& c,
                               float* rest, const Ahead<NV>& soon) {
  const Corner<MR, NV, true> waiting{rest, kPanel, 16};
  for (int64_t k = r.begin; k < r.end;) {
    const int64_t in_group = k % start.group, group_end = std::min(all, k - in_group + start.group);
    const int64_t end = std::min(r.end, group_end), from = k - r.begin;
    auto t = zero_tile<MR, NV>();
    if (in_group > 0) waiting.each([&](int i, int j) HWY_ATTR { t.v[i][j] = waiting.get(i, j); });
    multiply<MR, NV, Tail>(t, end - k, r.a + from * r.lda, 1, r.lda, r.b + from * r.ldb, r.ldb, c.last, soon);
    if (end < group_end) {
      waiting.each([&](int i, int j) HWY_ATTR { waiting.set(i, j, t.v[i][j]); });
    } else if (start.from_zero && k < start.group) {
      c.each([&](int i, int j) HWY_ATTR { c.set(i, j, zero() + t.v[i][j]); });
    } else {
      c.each([&](int i, int j) HWY_ATTR { c.set(i, j, c.get(i, j) + t.v[i][j]); });
    }
    k = end;
  }
}

struct Wanted {  // A^T B and where it goes
  int64_t m, n, r;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  RowStart start;
};

constexpr int64_t kDepth = 128;  // rows at a time: their part of a panel of B stays in the first-level cache

// Operands where they lie: `rows` rows of them from row k on.
template <int NV, bool Tail, bool Grouped>
HWY_NOINLINE void panel_in_place(const Wanted& w, int64_t p, int64_t k, int64_t rows) {
  const int64_t last = (w.n - p - 1) % 16 + 1, m = w.m, lda = w.lda, ldb = w.ldb, ldc = w.ldc, all = w.r;
  const float *a = w.a + k * lda, *b = w.b + k * ldb + p;
  float* c = w.c + p;
  const RowStart start = w.start;
  each_tile(0, m, [=](auto count, int64_t i) HWY_ATTR {
    constexpr int MR = decltype(count)::value;
    const Ahead<NV> soon{c + (i + MR) * ldc, ldc, i + 2 * MR <= m ? MR * NV : 0};
    const Rows r{k, k + rows, a + i, lda, b, ldb};
    const Corner<MR, NV, !Tail> corner{c + i * ldc, ldc, last};
    if constexpr (Grouped) {
      tile_of_groups<MR, NV, Tail>(r, all, start, corner, corner.c, soon);
    } else {
      tile_of_one_chain<MR, NV, Tail>(r, i, start, corner, soon);
    }
  });
}

// A group's rows at a time, or so many that both operands stay in the second-level cache
template <bool Grouped>
HWY_INLINE void in_place(const Wanted& w) {
  const int64_t block = Grouped ? w.start.group : kDepth;
  for (int64_t k = 0; k < w.r; k += block) {
    const int64_t rows = std::min(block, w.r - k);
    for (int64_t p = 0; p < w.n; p += kPanel)
      with_constant<kVectors>((std::min<int64_t>(kPanel, w.n - p) + 15) / 16, [&](auto nv) HWY_ATTR {
        constexpr int NV = decltype(nv)::value;
        w.n - p >= 16 * NV ? panel_in_place<NV, false, Grouped>(w, p, k, rows)
                           : panel_in_place<NV, true, Grouped>(w, p, k, rows);
      });
  }
}

// Columns of A side by side, as many as a tile has rows, for one tile after another. A few rows at a time: they are
// read as they lie, and a tile's part of them fills whole lines.
HWY_INLINE void copy_strip(const float* a, int64_t lda, int64_t rows, int64_t columns, float* out) {
  constexpr int64_t kFew = 8;
  for (int64_t k0 = 0; k0 < rows; k0 += kFew) {
    const int64_t end = std::min(k0 + kFew, rows);
    each_tile(0, columns, [&](auto count, int64_t i) HWY_ATTR {
      constexpr int MR = decltype(count)::value;
      for (int64_t k = k0; k < end; ++k) std::memcpy(out + i * rows + k * MR, a + k * lda + i, MR * sizeof(float));
    });
  }
}

template <int NV>
HWY_INLINE void copy_panel(const float* b, int64_t ldb, int64_t rows, int64_t last, float* out) {
  for (int64_t k = 0; k < rows; ++k, b += ldb, out += 16 * NV) {
    BARY_UNROLL for (int j = 0; j < NV; ++j) {
      store(j == NV - 1 && last < 16 ? load_n(b + 16 * j, last) : load(b + 16 * j), out + 16 * j);
    }
  }
}

constexpr int64_t kCopied = 128 * 264;                // floats of A: 132 KB of the second-level cache
constexpr int64_t kStrip = 20 * kRows;                // its columns at most where chains wait
constexpr int64_t kFewColumns = 4 * kRows;            // too few for a copy of B to be worth it
constexpr int64_t kFewPanels = kPanel >= 64 ? 4 : 2;  // and of A; measured in a training step

struct Copies {
  HWY_ALIGN float a[kCopied];
  HWY_ALIGN float b[kDepth * kPanel];
  HWY_ALIGN float chains[kStrip * kPanel];
};

// Rows that are copied at a time: one group, or several, or some of the one chain
HWY_INLINE int64_t rows_copied(int64_t group) {
  if (!group) return kDepth;
  return group < kDepth ? kDepth / group * group : group;
}
HWY_INLINE int64_t columns_copied(int64_t rows, bool waiting) {
  const int64_t fit = kCopied / rows / kRows * kRows;
  return waiting ? std::min(fit, kStrip) : fit;
}

// A panel of B against the copied strip, whose rows are [begin, end)
template <int NV, bool Whole, bool Grouped>
HWY_NOINLINE void panel_of_copies(const Wanted& w, int64_t i0, int64_t columns, int64_t p, int64_t begin, int64_t end,
                                  Copies& copies) {
  const int64_t last = Whole ? 16 : w.n - p - 16 * (NV - 1), ldc = w.ldc, all = w.r;
  float *c = w.c + i0 * ldc + p, *chains = copies.chains;
  const RowStart start = w.start;
  for (int64_t k = begin; k < end; k += kDepth) {
    const int64_t to = std::min(k + kDepth, end);
    copy_panel<NV>(w.b + k * w.ldb + p, w.ldb, to - k, last, copies.b);
    const float *a = copies.a, *b = copies.b;
    each_tile(0, columns, [=](auto count, int64_t i) HWY_ATTR {
      constexpr int MR = decltype(count)::value;
      const Corner<MR, NV, Whole> corner{c + i * ldc, ldc, last};
      const Ahead<NV> soon{c + (i + MR) * ldc, ldc, i + 2 * MR <= columns ? MR * NV : 0};
      const Rows rows{k, to, a + i * (end - begin) + (k - begin) * MR, MR, b, 16 * NV};
      if constexpr (Grouped) {
        tile_of_groups<MR, NV, false>(rows, all, start, corner, chains + i * kPanel, soon);
      } else {
        tile_of_one_chain<MR, NV, false>(rows, i0 + i, start, corner, soon);
      }
    });
  }
}

template <bool Grouped>
void from_copies(const Wanted& w, int64_t deep, int64_t strip) {
  Copies copies;
  for (int64_t i = 0; i < w.m; i += strip) {
    const int64_t columns = std::min(strip, w.m - i);
    for (int64_t k = 0; k < w.r; k += deep) {
      const int64_t end = std::min(k + deep, w.r);
      copy_strip(w.a + k * w.lda + i, w.lda, end - k, columns, copies.a);
      for (int64_t p = 0; p < w.n; p += kPanel)
        with_constant<kVectors>((std::min<int64_t>(kPanel, w.n - p) + 15) / 16, [&](auto nv) HWY_ATTR {
          constexpr int NV = decltype(nv)::value;
          w.n - p >= 16 * NV ? panel_of_copies<NV, true, Grouped>(w, i, columns, p, k, end, copies)
                             : panel_of_copies<NV, false, Grouped>(w, i, columns, p, k, end, copies);
        });
    }
  }
}

void GemmTransposed(int64_t m, int64_t n, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                    int64_t ldc, RowStart start) {
  const Wanted w{m, n, r, a, lda, b, ldb, c, ldc, start};
  const int64_t deep = rows_copied(start.group), strip = columns_copied(deep, deep > kDepth);
  const bool few = w.n < kPanel * kFewPanels || m < kFewColumns || strip < kFewColumns;
  if (start.group) {
    few ? in_place<true>(w) : from_copies<true>(w, deep, strip);
  } else {
    few ? in_place<false>(w) : from_copies<false>(w, deep, strip);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(GemmTransposed);

void gemm_transposed(int64_t m, int64_t n, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, RowStart start) {
  if (r == 0 && start.from_zero)  // a sum of nothing
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
  HWY_DYNAMIC_DISPATCH(GemmTransposed)(m, n, r, a, lda, b, ldb, c, ldc, start);
}

}  // namespace bary::kernel
#endif
