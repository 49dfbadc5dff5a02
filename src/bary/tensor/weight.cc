// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/weight.h"

#include <algorithm>
#include <array>

#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

constexpr int64_t kRowGrain = 48;   // eight register tiles
constexpr int64_t kMostRows = 240;  // that pass by a panel before it leaves the cache
// Multiply-adds below which a second thread costs more than it does
constexpr int64_t kSmallProduct = int64_t{1} << 18;

kernel::Epilogue shifted(kernel::Epilogue e, int64_t row, int64_t column) {
  if (e.bias) e.bias += column;
  if (e.onto) e.onto += row * e.onto_ld + column;
  if (e.times) e.times += row * e.times_ld + column;
  if (e.derivative) e.derivative += row * e.derivative_ld + column;
  return e;
}

// The part of rows [r0, r1) and columns [c0, c1), which begin at a panel.
void call_part(const kernel::Product& p, const kernel::Right& b, const kernel::Epilogue& e,
               std::array<int64_t, 4> part) {
  const auto [r0, r1, c0, c1] = part;
  const int64_t step = b.form == kernel::Form::packed ? p.k : b.form == kernel::Form::rows ? 1 : b.ld;
  kernel::gemm({r1 - r0, c1 - c0, p.k, p.a + r0 * p.lda, p.lda, p.c + r0 * p.ldc + c0, p.ldc},
               {b.data + c0 * step, b.ld, b.form}, shifted(e, r0, c0));
}

// Rows over threads while the weight fits the second-level cache. A larger one is cut by columns as well, so that it is
// read once for many rows; so is one that meets few rows (decoding).
void run(const kernel::Product& p, const kernel::Right& b, const kernel::Epilogue& e) {
  FlushDenormals flush;  // on the direct path too
  if (inside_parallel() || p.m * p.n * p.k < kSmallProduct) return kernel::gemm(p, b, e);
  const int64_t width = kernel::panel_width();
  int64_t rows = kRowGrain, columns = p.n;
  if (p.k * p.n > kLargeWeight || p.m < 2 * kRowGrain) {
    rows = p.m < 2 * kMostRows ? p.m : kMostRows;
    columns = std::max<int64_t>(256, kSmallProduct / (rows * p.k)) / width * width;
  }
  const int64_t down = (p.m + rows - 1) / rows, across = (p.n + columns - 1) / columns;
  parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i % down * rows, c = i / down * columns;
      call_part(p, b, e, {r, std::min(p.m, r + rows), c, std::min(p.n, c + columns)});
    }
  });
}

// Rows of a weight's gradient a task: many, since they share what is copied, and as many tasks for every thread.
int64_t rows_of_gradient(int64_t n) {
  constexpr int64_t kMost = 264, kTile = 6;
  const int64_t workers = threads(), each = std::max<int64_t>(1, (n + kMost * workers - 1) / (kMost * workers));
  const int64_t share = (n + each * workers - 1) / (each * workers);
  return std::max(kRowGrain, (share + kTile - 1) / kTile * kTile);
}

// Is packing the weight on the way cheaper than a packed copy, which is made again after every update?
bool on_the_way(int64_t rows, int64_t n, int64_t k) {
  return !inside_parallel() && n * k >= kLargeWeight && rows >= 2 * kRowGrain;
}

}  // namespace

Weight::Packed Weight::packed(bool transposed) const {
  if (w_.is_parameter()) return {w_.owner()->packed(w_, transposed), {}};
  int64_t n = w_.dim(0), k = w_.dim(1);
  Packed p{nullptr, Buffer(transposed ? kernel::packed_size(n, k) : kernel::packed_size(k, n))};
  if (transposed) {
    kernel::pack_transposed(w_.data(), n, k, w_.stride(), p.temporary.data());
  } else {
    kernel::pack(w_.data(), n, k, w_.stride(), p.temporary.data());
  }
  p.data = p.temporary.data();
  return p;
}

void Weight::forward_rows(const float* x, int64_t ldx, int64_t rows, const Tensor& y, const kernel::Epilogue& e) const {
  const int64_t n = w_.dim(0), k = w_.dim(1);
  const kernel::Product product{rows, n, k, x, ldx, y.data(), y.stride()};
  if (on_the_way(rows, n, k)) return run(product, {w_.data(), w_.stride(), kernel::Form::transposed}, e);
  Packed p = packed(true);
  run(product, {p.data}, e);
}

void Weight::forward(const Tensor& x, const Tensor& y, const kernel::Epilogue& e) const {
  forward_rows(x.data(), x.stride(), x.rows(), y, e);
}

void Weight::backward_input(const float* dy, int64_t ldy, int64_t rows, GradientSlot dx, const Tensor* times) const {
  const int64_t n = w_.dim(0), k = w_.dim(1);
  kernel::Epilogue e;
  if (times) e.times = times->data(), e.times_ld = times->stride();
  if (on_the_way(rows, n, k)) {
    const kernel::Right b{w_.data(), w_.stride(), kernel::Form::rows};
    if (!dx.accumulate) return run({rows, k, n, dy, ldy, dx.data, dx.stride}, b, e);
    Tensor own(Shape{rows, k});
    run({rows, k, n, dy, ldy, own.data(), own.stride()}, b, e);
    return kernel::add_rows(rows, k, own.data(), own.stride(), dx.data, dx.stride);
  }
  if (dx.accumulate) e.onto = dx.data, e.onto_ld = dx.stride;
  Packed p = packed(false);
  run({rows, k, n, dy, ldy, dx.data, dx.stride}, {p.data}, e);
}

void Weight::backward_weight(const float* dy, int64_t ldy, const Tensor& x, const Tensor& bias) const {
  backward_weight_rows({dy, x.data(), ldy, x.stride(), x.rows(), Tape::active()->group_of(x.rows())}, bias);
}

void Weight::backward_weight_rows(const Rows& r, const Tensor& bias) const {
  FlushDenormals flush;
  const bool grouped = Tape::active()->grouped();
  const int64_t n = w_.dim(0), k = w_.dim(1);
  if (auto g = w_.grad()) {
    kernel::RowStart start;
    start.from_zero = !g.accumulate;
    start.group = grouped ? r.group : 0;
    auto part = [&](int64_t b, int64_t e) {
      kernel::gemm_transposed(e - b, k, r.count, r.dy + b, r.ldy, r.x, r.ldx, g.data + b * g.stride, g.stride, start);
    };
    if (inside_parallel() || n * k * r.count < kSmallProduct) {
      part(0, n);
    } else {
      parallel_for(n, rows_of_gradient(n), part);
    }
  }
  add_row_sums(r.dy, r.ldy, r.count, r.group, bias);
}

void add_row_sums(const float* dy, int64_t ldy, int64_t rows, int64_t group, const Tensor& bias) {
  auto g = bias.grad().cleared(1);
  if (!g) return;
  const int64_t n = bias.channels();
  const bool grouped = Tape::active()->grouped();
  auto part = [&](int64_t b, int64_t e) {
    if (!grouped) return kernel::sum_rows(rows, e - b, dy + b, ldy, g.data + b);
    Tensor sum(Shape{e - b});
    for (int64_t i = 0; i < rows; i += group) {
      std::fill_n(sum.data(), e - b, 0.0f);
      kernel::sum_rows(std::min(group, rows - i), e - b, dy + i * ldy + b, ldy, sum.data());
      kernel::add_rows(1, e - b, sum.data(), 0, g.data + b, 0);
    }
  };
  constexpr int64_t kSmallSum = int64_t{1} << 17, kColumns = 128;
  inside_parallel() || rows* n < kSmallSum ? part(0, n) : parallel_for(n, kColumns, part);
}

}  // namespace bary
