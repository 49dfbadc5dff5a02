// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/gemm.h"

#include <algorithm>

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/gemm.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before these
#include "bary/kernel/activation-inl.h"
#include "bary/kernel/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

int64_t PanelWidth() { return kPanel; }

HWY_INLINE int64_t panel_columns(int64_t n) {  // of a panel with n columns left, zeros included
  return std::min<int64_t>(kPanel, (n + 15) / 16 * 16);
}

void PackTransposed(const float* w, int64_t n, int64_t k, int64_t ld, float* out) {
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = panel_columns(n - p);
    for (int64_t j = 0; j < width; ++j) {
      if (p + j < n) {
        for (int64_t i = 0; i < k; ++i) out[i * width + j] = w[(p + j) * ld + i];
      } else {
        for (int64_t i = 0; i < k; ++i) out[i * width + j] = 0;
      }
    }
    out += width * k;
  }
}

void Pack(const float* w, int64_t k, int64_t n, int64_t ld, float* out) {
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = panel_columns(n - p), valid = std::min(width, n - p);
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(out, w + i * ld + p, static_cast<size_t>(valid) * 4);
      std::fill(out + valid, out + width, 0.0f);
      out += width;
    }
  }
}

// The accumulators of a tile through the epilogue to memory; (row, column) is the tile's place in C.
template <int MR, int NV>
HWY_INLINE void finish(const Tile<MR, NV>& t, const Epilogue& e, int64_t row, int64_t column, int64_t n, float* c,
                       int64_t ldc) {
  BARY_UNROLL for (int j = 0; j < NV; ++j) {
    int64_t at = column + 16 * j, left = n - at;
    V16 bias = e.bias ? load_n(e.bias + at, left) : zero();
    BARY_UNROLL for (int i = 0; i < MR; ++i) {
      V16 x = t.v[i][j];
      if (e.bias) x = x + bias;
      if (e.times) x = x * load_n(e.times + (row + i) * e.times_ld + at, left);
      if (e.onto) x = x + load_n(e.onto + (row + i) * e.onto_ld + at, left);
      store_n(x, c + (row + i) * ldc + at, left);
    }
  }
}

template <int NV>
HWY_NOINLINE void panel_product(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                                int64_t column, float* c, int64_t ldc, const Epilogue& e) {
  auto rows = [&](auto count, int64_t i) HWY_ATTR {
    constexpr int MR = decltype(count)::value;
    Tile<MR, NV> t = zero_tile<MR, NV>();
    Ahead<NV> soon{c + (i + MR) * ldc + column, ldc, i + 2 * MR <= m ? MR * NV : 0, packed + (k + i * k / m) * NV * 16};
    multiply<MR, NV, false>(t, k, a + i * lda, lda, 1, packed, 16 * NV, 16, soon);
    finish(t, e, i, column, n, c, ldc);
  };
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) rows(Int<kRows>(), i);
  if (i < m) with_constant<kRows - 1>(m - i, [&](auto count) HWY_ATTR { rows(count, i); });
}

void Gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c, int64_t ldc,
          const Epilogue& e) {
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = panel_columns(n - p);
    with_constant<kVectors>(width / 16, [&](auto nv) HWY_ATTR {
      panel_product<decltype(nv)::value>(m, n, k, a, lda, packed, p, c, ldc, e);
    });
    if (e.activation != Activation::none || e.derivative) {  // while the panel's outputs are in the first-level cache
      activate(e.activation, m, std::min(width, n - p), c + p, ldc, e.derivative ? e.derivative + p : nullptr,
               e.derivative_ld);
    }
    packed += width * k;
  }
}

template <int MR, int NV, bool Tail>
HWY_INLINE void transposed_tile(int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                                int64_t ldc, int64_t last, bool from_zero, Ahead<NV> soon) {
  auto t = zero_tile<MR, NV>();
  if (!from_zero) {
    BARY_UNROLL for (int i = 0; i < MR; ++i) {
      BARY_UNROLL for (int j = 0; j < NV; ++j) {
        t.v[i][j] = Tail && j == NV - 1 ? load_n(c + i * ldc + 16 * j, last) : load(c + i * ldc + 16 * j);
      }
    }
  }
  multiply<MR, NV, Tail>(t, r, a, 1, lda, b, ldb, last, soon);
  BARY_UNROLL for (int i = 0; i < MR; ++i) {
    BARY_UNROLL for (int j = 0; j < NV; ++j) {
      if (Tail && j == NV - 1) {
        store_n(t.v[i][j], c + i * ldc + 16 * j, last);
      } else {
        store(t.v[i][j], c + i * ldc + 16 * j);
      }
    }
  }
}

template <int NV, bool Tail>
HWY_NOINLINE void transposed_panel(int64_t m, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb,
                                   float* c, int64_t ldc, int64_t last, RowStart start) {
  auto rows = [&](auto count, int64_t i) HWY_ATTR {
    constexpr int MR = decltype(count)::value;
    int64_t from = start.causal ? std::clamp<int64_t>(i + start.shift, 0, r) : 0;
    Ahead<NV> soon{c + (i + MR) * ldc, ldc, i + 2 * MR <= m ? MR * NV : 0};
    transposed_tile<MR, NV, Tail>(r - from, a + i + from * lda, lda, b + from * ldb, ldb, c + i * ldc, ldc, last,
                                  start.from_zero, soon);
  };
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) rows(Int<kRows>(), i);
  if (i < m) with_constant<kRows - 1>(m - i, [&](auto count) HWY_ATTR { rows(count, i); });
}

void GemmTransposed(int64_t m, int64_t n, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                    int64_t ldc, RowStart start) {
  constexpr int64_t kBlock = 128;  // rows a block: both operands of a tile stay in the second-level cache
  for (int64_t r0 = 0; r0 < r; r0 += kBlock) {
    int64_t rows = std::min(kBlock, r - r0);
    RowStart here{start.causal, start.shift - r0, start.from_zero && r0 == 0};
    const float *ar = a + r0 * lda, *br = b + r0 * ldb;
    for (int64_t p = 0; p < n; p += kPanel) {
      int64_t columns = std::min<int64_t>(kPanel, n - p), last = (columns - 1) % 16 + 1;
      with_constant<kVectors>((columns + 15) / 16, [&](auto nv) HWY_ATTR {
        constexpr int NV = decltype(nv)::value;
        if (last == 16) {
          transposed_panel<NV, false>(m, rows, ar, lda, br + p, ldb, c + p, ldc, last, here);
        } else {
          transposed_panel<NV, true>(m, rows, ar, lda, br + p, ldb, c + p, ldc, last, here);
        }
      });
    }
  }
}

void SumRows(int64_t r, int64_t n, const float* a, int64_t lda, float* out) {
  for (int64_t j = 0; j < n; j += 16) {
    V16 s = load_n(out + j, n - j);
    for (int64_t i = 0; i < r; ++i) s = s + load_n(a + i * lda + j, n - j);
    store_n(s, out + j, n - j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(PanelWidth);
HWY_EXPORT(PackTransposed);
HWY_EXPORT(Pack);
HWY_EXPORT(Gemm);
HWY_EXPORT(GemmTransposed);
HWY_EXPORT(SumRows);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
int64_t packed_size(int64_t n, int64_t k) { return (n + 15) / 16 * 16 * k; }
void pack_transposed(const float* w, int64_t n, int64_t k, int64_t ld, float* packed) {
  HWY_DYNAMIC_DISPATCH(PackTransposed)(w, n, k, ld, packed);
}
void pack(const float* w, int64_t k, int64_t n, int64_t ld, float* packed) {
  HWY_DYNAMIC_DISPATCH(Pack)(w, k, n, ld, packed);
}
void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c, int64_t ldc,
          const Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(Gemm)(m, n, k, a, lda, packed, c, ldc, epilogue);
}
void gemm_transposed(int64_t m, int64_t n, int64_t r, const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, RowStart start) {
  HWY_DYNAMIC_DISPATCH(GemmTransposed)(m, n, r, a, lda, b, ldb, c, ldc, start);
}
void sum_rows(int64_t r, int64_t n, const float* a, int64_t lda, float* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(r, n, a, lda, out);
}

}  // namespace bary::kernel
#endif
