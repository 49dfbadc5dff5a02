// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/weight.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

constexpr int64_t kRowGrain = 48;  // eight register tiles
constexpr int64_t kSmallProduct = int64_t{1}
                                  << 18;  // multiply-adds below which a second thread costs more than it does

kernel::Epilogue shifted(kernel::Epilogue e, int64_t row, int64_t column) {
  if (e.bias) e.bias += column;
  if (e.onto) e.onto += row * e.onto_ld + column;
  if (e.times) e.times += row * e.times_ld + column;
  if (e.derivative) e.derivative += row * e.derivative_ld + column;
  return e;
}

struct Product {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* packed;
  float* c;
  int64_t ldc;
};

// Rows over threads; a product with few rows and a large weight (decoding) is cut by columns instead.
void run(const Product& p, const kernel::Epilogue& e) {
  FlushDenormals flush;  // on the direct path too
  if (inside_parallel() || p.m * p.n * p.k < kSmallProduct) {
    return kernel::gemm(p.m, p.n, p.k, p.a, p.lda, p.packed, p.c, p.ldc, e);
  }
  if (p.m >= 2 * kRowGrain) {
    return parallel_for(p.m, kRowGrain, [&](int64_t b, int64_t end) {
      kernel::gemm(end - b, p.n, p.k, p.a + b * p.lda, p.lda, p.packed, p.c + b * p.ldc, p.ldc, shifted(e, b, 0));
    });
  }
  const int64_t width = kernel::panel_width();
  int64_t grain = std::max<int64_t>(1, kSmallProduct / (p.m * p.k * width)) * width;
  parallel_for(p.n, grain, [&](int64_t b, int64_t end) {
    kernel::gemm(p.m, end - b, p.k, p.a, p.lda, p.packed + b * p.k, p.c + b, p.ldc, shifted(e, 0, b));
  });
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
  Packed p = packed(true);
  run({rows, w_.dim(0), w_.dim(1), x, ldx, p.data, y.data(), y.stride()}, e);
}

void Weight::forward(const Tensor& x, const Tensor& y, const kernel::Epilogue& e) const {
  forward_rows(x.data(), x.stride(), x.rows(), y, e);
}

void Weight::backward_input(const float* dy, int64_t ldy, int64_t rows, GradientSlot dx, const Tensor* times) const {
  Packed p = packed(false);
  kernel::Epilogue e;
  if (times) e.times = times->data(), e.times_ld = times->stride();
  if (dx.accumulate) e.onto = dx.data, e.onto_ld = dx.stride;
  run({rows, w_.dim(1), w_.dim(0), dy, ldy, p.data, dx.data, dx.stride}, e);
}

void Weight::backward_weight(const float* dy, int64_t ldy, const Tensor& x, const Tensor& bias) const {
  backward_weight_rows(dy, ldy, x.rows(), x.data(), x.stride(), bias);
}

void Weight::backward_weight_rows(const float* dy, int64_t ldy, int64_t rows, const float* x, int64_t ldx,
                                  const Tensor& bias) const {
  FlushDenormals flush;
  const int64_t n = w_.dim(0), k = w_.dim(1);
  if (auto g = w_.grad()) {
    kernel::RowStart start;
    start.from_zero = !g.accumulate;
    auto part = [&](int64_t b, int64_t e) {
      kernel::gemm_transposed(e - b, k, rows, dy + b, ldy, x, ldx, g.data + b * g.stride, g.stride, start);
    };
    if (inside_parallel() || n * k * rows < kSmallProduct) {
      part(0, n);
    } else {
      parallel_for(n, kRowGrain, part);
    }
  }
  if (auto g = bias.grad().cleared(1)) kernel::sum_rows(rows, n, dy, ldy, g.data);
}

}  // namespace bary
