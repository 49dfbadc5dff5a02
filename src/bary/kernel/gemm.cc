// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/gemm.h"

#include <algorithm>

#include "bary/base/error.h"
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

// Columns [0, valid) of a panel over k rows, the rest of its width zero: from rows of W as they lie, or from W's
// columns.
HWY_INLINE void pack_panel(const float* w, int64_t ld, bool transposed, int64_t k, int64_t valid, int64_t width,
                           float* out) {
  if (transposed) {
    transpose(w, ld, valid, k, out, width);
  } else {
    for (int64_t i = 0; i < k; ++i) std::memcpy(out + i * width, w + i * ld, static_cast<size_t>(valid) * 4);
  }
  for (int64_t i = 0; i < k && valid < width; ++i) std::fill(out + i * width + valid, out + (i + 1) * width, 0.0f);
}

void Pack(const float* w, int64_t k, int64_t n, int64_t ld, bool transposed, float* out) {
  for (int64_t p = 0; p < n; p += kPanel) {
    int64_t width = panel_columns(n - p);
    pack_panel(w + (transposed ? p * ld : p), ld, transposed, k, std::min(width, n - p), width, out);
    out += width * k;
  }
}

// A tile's place in a matrix. Whole: all its columns are there, which spares every access a question; the questions of
// the epilogue are asked once a tile, not once a vector.
template <int MR, int NV, bool Whole>
struct Place {
  int64_t row, column, n;
  template <class F>
  HWY_INLINE void each(const F& f) const {
    BARY_UNROLL for (int i = 0; i < MR; ++i) { BARY_UNROLL for (int j = 0; j < NV; ++j) f(i, j); }
  }
  HWY_INLINE V16 load_from(const float* p, int64_t ld, int i, int j) const {
    const float* at = p + (row + i) * ld + column + 16 * j;
    return Whole ? load(at) : load_n(at, n - column - 16 * j);
  }
  HWY_INLINE void store_to(float* p, int64_t ld, int i, int j, V16 x) const {
    float* at = p + (row + i) * ld + column + 16 * j;
    Whole ? store(x, at) : store_n(x, at, n - column - 16 * j);
  }
};

// The accumulators of a tile through the epilogue to C
template <int MR, int NV, bool Whole>
HWY_INLINE void finish(Tile<MR, NV>& t, const Epilogue& e, const Place<MR, NV, Whole>& at, float* c, int64_t ldc) {
  if (e.bias) {
    V16 bias[NV];
    BARY_UNROLL for (int j = 0; j < NV; ++j) bias[j] = at.load_from(e.bias, 0, 0, j);
    at.each([&](int i, int j) HWY_ATTR { t.v[i][j] = t.v[i][j] + bias[j]; });
  }
  if (e.times) at.each([&](int i, int j) HWY_ATTR { t.v[i][j] = t.v[i][j] * at.load_from(e.times, e.times_ld, i, j); });
  if (e.onto) at.each([&](int i, int j) HWY_ATTR { t.v[i][j] = t.v[i][j] + at.load_from(e.onto, e.onto_ld, i, j); });
  at.each([&](int i, int j) HWY_ATTR { at.store_to(c, ldc, i, j, t.v[i][j]); });
}

// The right operand over some of k: a packed panel, and what will be read after it.
struct Panel {
  const float* data;
  bool first, last;  // of the blocks of k: between them the chains rest in C
  const float* ahead;
  int64_t ahead_ld;
  int ahead_per_row;  // lines
};

template <int NV, bool Whole>
HWY_NOINLINE void panel_product(const Product& g, int64_t k0, int64_t k, const Panel& b, int64_t column,
                                const Epilogue& e) {
  each_tile(0, g.m, [&](auto count, int64_t i) HWY_ATTR {
    constexpr int MR = decltype(count)::value;
    const Place<MR, NV, Whole> at{i, column, g.n};
    Tile<MR, NV> t = zero_tile<MR, NV>();
    if (!b.first) at.each([&](int r, int j) HWY_ATTR { t.v[r][j] = at.load_from(g.c, g.ldc, r, j); });
    const int64_t row = i * k * NV / g.m / b.ahead_per_row;  // the tiles share the lines ahead between them
    Ahead<NV> soon{g.c + (i + MR) * g.ldc + column, g.ldc,      i + 2 * MR <= g.m ? MR * NV : 0,
                   b.ahead + row * b.ahead_ld,      b.ahead_ld, b.ahead_per_row};
    multiply<MR, NV, false>(t, k, g.a + i * g.lda + k0, g.lda, 1, b.data, 16 * NV, 16, soon);
    if (b.last) {
      finish(t, e, at, g.c, g.ldc);
    } else {
      at.each([&](int r, int j) HWY_ATTR { at.store_to(g.c, g.ldc, r, j, t.v[r][j]); });
    }
  });
}

constexpr int64_t kDepth = 32768 / 4 / kPanel;  // of a panel that stays in the first-level cache while rows pass by

// The part of the right operand for columns p .. and rows k0 .. of one block. What is not packed is packed here, which
// costs little where many rows of A follow.
HWY_INLINE Panel panel_at(const Right& b, int64_t n, int64_t k, int64_t p, int64_t k0, int64_t depth, float* space) {
  const int64_t width = panel_columns(n - p);
  Panel panel{};
  panel.first = k0 == 0;
  panel.last = k0 + depth >= k;
  if (b.form == Form::packed) {
    panel.data = b.data + p * k + k0 * width;
    panel.ahead = panel.data + depth * width;
    panel.ahead_ld = width;
    panel.ahead_per_row = static_cast<int>(width / 16);
    return panel;
  }
  const bool transposed = b.form == Form::transposed;
  auto at = [&](int64_t row, int64_t column) {
    return b.data + (transposed ? column * b.ld + row : row * b.ld + column);
  };
  pack_panel(at(k0, p), b.ld, transposed, depth, std::min(width, n - p), width, space);
  panel.data = space;
  panel.ahead = panel.last ? at(0, p + kPanel < n ? p + kPanel : 0) : at(k0 + depth, p);
  panel.ahead_ld = b.ld;
  panel.ahead_per_row = static_cast<int>(std::max<int64_t>((transposed ? depth : width) / 16, 1));
  return panel;
}

HWY_INLINE bool needs_c(const Product& g, const Epilogue& e) { return g.c && (e.onto == g.c || e.times == g.c); }

void Gemm(const Product& g, const Right& b, const Epilogue& e) {
  HWY_ALIGN float space[kDepth * kPanel];
  // Between blocks of k the chains rest in C, unless C holds what the epilogue still needs.
  const int64_t block = needs_c(g, e) ? std::max<int64_t>(g.k, 1) : kDepth;
  for (int64_t p = 0; p < g.n; p += kPanel) {
    const int64_t width = panel_columns(g.n - p);
    for (int64_t k0 = 0; k0 == 0 || k0 < g.k; k0 += block) {
      const int64_t depth = std::min(block, g.k - k0);
      const Panel panel = panel_at(b, g.n, g.k, p, k0, depth, space);
      with_constant<kVectors>(width / 16, [&](auto nv) HWY_ATTR {
        constexpr int NV = decltype(nv)::value;
        if (p + 16 * NV <= g.n) {
          panel_product<NV, true>(g, k0, depth, panel, p, e);
        } else {
          panel_product<NV, false>(g, k0, depth, panel, p, e);
        }
      });
    }
    if (e.activation != Activation::none || e.derivative) {  // while the panel's outputs are in the first-level cache
      activate(e.activation, g.m, std::min(width, g.n - p), g.c + p, g.ldc, e.derivative ? e.derivative + p : nullptr,
               e.derivative_ld);
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
HWY_EXPORT(Pack);
HWY_EXPORT(Gemm);
HWY_EXPORT(SumRows);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(PanelWidth)(); }
int64_t packed_size(int64_t n, int64_t k) { return (n + 15) / 16 * 16 * k; }
void pack_transposed(const float* w, int64_t n, int64_t k, int64_t ld, float* packed) {
  HWY_DYNAMIC_DISPATCH(Pack)(w, k, n, ld, true, packed);
}
void pack(const float* w, int64_t k, int64_t n, int64_t ld, float* packed) {
  HWY_DYNAMIC_DISPATCH(Pack)(w, k, n, ld, false, packed);
}
void gemm(const Product& product, const Right& b, const Epilogue& epilogue) {
  BARY_CHECK(b.form == Form::packed || !product.c || (epilogue.onto != product.c && epilogue.times != product.c),
             "gemm: C is also what is added to the product or multiplied with it; that needs a packed right operand");
  HWY_DYNAMIC_DISPATCH(Gemm)(product, b, epilogue);
}
void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c, int64_t ldc,
          const Epilogue& epilogue) {
  gemm({m, n, k, a, lda, c, ldc}, {packed, 0, Form::packed}, epilogue);
}
void sum_rows(int64_t r, int64_t n, const float* a, int64_t lda, float* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(r, n, a, lda, out);
}

}  // namespace bary::kernel
#endif
