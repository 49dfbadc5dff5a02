// SPDX-License-Identifier: Apache-2.0
// The register tile: MR rows by NV vectors of sixteen, accumulators in registers over the whole k loop. 6 x 4 under
// AVX-512 and 6 x 1 elsewhere fill the register file.
#if defined(BARY_KERNEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BARY_KERNEL_TILE_INL_H_
#undef BARY_KERNEL_TILE_INL_H_
#else
#define BARY_KERNEL_TILE_INL_H_
#endif

#include <type_traits>

#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

constexpr int kRows = 6;               // rows of the tile
constexpr int kVectors = kPanel / 16;  // vectors of the tile

template <int MR, int NV>
struct Tile {
  V16 v[MR][NV];
};

// Memory that will be needed soon, asked for one line at a time while a tile computes: a burst would fill the queue of
// outstanding loads. NV lines a row at `tile` (the next tile of the result); `per_row` lines a row at `stream` (the
// next weights), which go to the second-level cache because those at work fill the first.
template <int NV>
struct Ahead {
  const float* tile = nullptr;
  int64_t ld = 0;
  int lines = 0;  // of the tile; 0: no tile
  const float* stream = nullptr;
  int64_t stream_ld = 0;
  int per_row = 1, line = 0, stream_line = 0;
  HWY_INLINE void next() {
    if (line < lines) {
      __builtin_prefetch(tile + line / NV * ld + line % NV * 16, 1, 3);
      ++line;
    }
    if (stream) {
      __builtin_prefetch(stream + 16 * stream_line, 0, 2);
      if (++stream_line == per_row) stream_line = 0, stream += stream_ld;
    }
  }
};
struct NothingAhead {
  HWY_INLINE void next() {}
};

// c[i][j] += A(i) B(16 j ..), one row of B: A(i) at a[i row_step]
template <int MR, int NV, bool Tail>
HWY_INLINE void multiply_row(V16 (&c)[MR][NV], const float* HWY_RESTRICT a, int64_t row_step,
                             const float* HWY_RESTRICT b, int64_t last) noexcept {
  V16 bv[NV];
  BARY_UNROLL for (int j = 0; j < NV; ++j) bv[j] = Tail && j == NV - 1 ? load_n(b + 16 * j, last) : load(b + 16 * j);
  BARY_UNROLL for (int i = 0; i < MR; ++i) {
    V16 av = set1(a[i * row_step]);
    BARY_UNROLL for (int j = 0; j < NV; ++j) c[i][j] = fma(av, bv[j], c[i][j]);
  }
}

// acc[i][j] += sum over k of A(i,k) B(k, 16 j ..): A(i,k) at a[i row_step + k k_step], B's row k at b + k ldb.
// Tail: the last vector has `last` valid columns and nothing beyond them is read.
template <int MR, int NV, bool Tail = false, class Soon = NothingAhead>
HWY_INLINE void multiply(Tile<MR, NV>& acc, int64_t k, const float* HWY_RESTRICT a, int64_t row_step, int64_t k_step,
                         const float* HWY_RESTRICT b, int64_t ldb, int64_t last = 16, Soon soon = {}) {
  V16 c[MR][NV];
  BARY_UNROLL for (int i = 0; i < MR; ++i) { BARY_UNROLL for (int j = 0; j < NV; ++j) c[i][j] = acc.v[i][j]; }
  for (; k >= 4; k -= 4) {
    soon.next();
    BARY_UNROLL for (int u = 0; u < 4; ++u, a += k_step, b += ldb) multiply_row<MR, NV, Tail>(c, a, row_step, b, last);
  }
  for (; k > 0; --k, a += k_step, b += ldb) multiply_row<MR, NV, Tail>(c, a, row_step, b, last);
  BARY_UNROLL for (int i = 0; i < MR; ++i) { BARY_UNROLL for (int j = 0; j < NV; ++j) acc.v[i][j] = c[i][j]; }
}

template <int MR, int NV>
HWY_INLINE Tile<MR, NV> zero_tile() {
  Tile<MR, NV> t;
  BARY_UNROLL for (int i = 0; i < MR; ++i) { BARY_UNROLL for (int j = 0; j < NV; ++j) t.v[i][j] = zero(); }
  return t;
}

template <int N>
using Int = std::integral_constant<int, N>;

// f(Int<n>) for the run-time n in [1, Max]
template <int Max, class F>
HWY_INLINE void with_constant(int64_t n, const F& f) {
  if constexpr (Max > 1) {
    if (n < Max) return with_constant<Max - 1>(n, f);
  }
  f(Int<Max>());
}

// f(Int<rows>(), row) for tiles of kRows rows of [begin, end), the last one with what is left
template <class F>
HWY_INLINE void each_tile(int64_t begin, int64_t end, const F& f) {
  int64_t i = begin;
  for (; i + kRows <= end; i += kRows) f(Int<kRows>(), i);
  if (i < end) with_constant<kRows - 1>(end - i, [&](auto count) HWY_ATTR { f(count, i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
