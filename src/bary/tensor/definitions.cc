// SPDX-License-Identifier: Apache-2.0
// Definitions that are loops and not compositions of other operations: read them beside fused.cc.
#include <cmath>

#include "bary/tensor/ops.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

// to[r][c] (+)= value(r, c)
template <class F>
void give(GradientSlot slot, int64_t rows, int64_t columns, F value) {
  for (int64_t r = 0; slot && r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float& to = slot.data[r * slot.stride + c];
      to = (slot.accumulate ? to : 0.0f) + value(r, c);
    }
  }
}

// first(0) second(0) + first(1) second(1) + ... , by fused multiply-add in this order
template <class A, class B>
float chain(int64_t n, A first, B second) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = std::fma(first(i), second(i), sum);
  return sum;
}

}  // namespace

Tensor linear_by_definition(const Tensor& x, const Tensor& w, const Tensor& bias) {
  BARY_CHECK(w.shape().rank() == 2 && w.dim(1) == x.channels(),
             "linear_by_definition: x has {} channels, the weight is {}", x.channels(), w.shape().str());
  const int64_t rows = x.rows(), N = w.dim(0), K = w.dim(1);
  Tensor y(x.shape().with_channels(N));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < N; ++n) {
      float sum = chain(
          K, [&](int64_t k) { return x.row(r)[k]; }, [&](int64_t k) { return w.row(n)[k]; });
      y.row(r)[n] = bias.defined() ? sum + bias.data()[n] : sum;
    }
  }
  record(
      y,
      [=] {
        auto g = [p = y.cotangent(), s = y.stride()](int64_t r, int64_t n) { return p[r * s + n]; };
        give(x.grad(), rows, K, [&](int64_t r, int64_t k) {
          return chain(
              N, [&](int64_t n) { return g(r, n); }, [&](int64_t n) { return w.row(n)[k]; });
        });
        give(w.grad(), N, K, [&](int64_t n, int64_t k) {
          return chain(
              rows, [&](int64_t r) { return g(r, n); }, [&](int64_t r) { return x.row(r)[k]; });
        });
        give(bias.grad(), 1, N, [&](int64_t, int64_t n) {
          return chain(
              rows, [&](int64_t r) { return g(r, n); }, [](int64_t) { return 1.0f; });
        });
      },
      x, w, bias);
  return y;
}

Tensor layer_norm_by_definition(const Tensor& x, const Tensor& w, const Tensor& b, float eps) {
  BARY_CHECK(w.shape().volume() == x.channels(), "layer_norm_by_definition: x has {} channels, the weight {}",
             x.channels(), w.shape().volume());
  const int64_t rows = x.rows(), C = x.channels();
  const float n = static_cast<float>(C);
  auto one = [](int64_t) { return 1.0f; };
  Tensor y(x.shape()), h(x.shape()), rstd(Shape{rows});
  for (int64_t r = 0; r < rows; ++r) {
    const float mean = chain(
                           C, [&](int64_t c) { return x.row(r)[c]; }, one) /
                       n;
    auto centred = [&](int64_t c) { return x.row(r)[c] - mean; };
    const float s = rstd.data()[r] = 1.0f / std::sqrt(chain(C, centred, centred) / n + eps);
    for (int64_t c = 0; c < C; ++c) {
      h.row(r)[c] = centred(c) * s;
      y.row(r)[c] = h.row(r)[c] * w.data()[c] + (b.defined() ? b.data()[c] : 0.0f);
    }
  }
  record(
      y,
      [=] {
        auto g = [p = y.cotangent(), s = y.stride()](int64_t r, int64_t c) { return p[r * s + c]; };
        std::vector<float> mean_u, mean_uh;
        for (int64_t r = 0; r < rows; ++r) {
          auto u = [&](int64_t c) { return g(r, c) * w.data()[c]; };
          mean_u.push_back(chain(C, u, one) / n);
          mean_uh.push_back(chain(C, u, [&](int64_t c) { return h.row(r)[c]; }) / n);
        }
        give(x.grad(), rows, C, [&](int64_t r, int64_t c) {
          const size_t i = static_cast<size_t>(r);
          return rstd.data()[r] * (g(r, c) * w.data()[c] - mean_u[i] - h.row(r)[c] * mean_uh[i]);
        });
        give(w.grad(), 1, C, [&](int64_t, int64_t c) {
          return chain(
              rows, [&](int64_t r) { return g(r, c); }, [&](int64_t r) { return h.row(r)[c]; });
        });
        give(b.grad(), 1, C, [&](int64_t, int64_t c) {
          return chain(
              rows, [&](int64_t r) { return g(r, c); }, one);
        });
      },
      x, w, b);
  return y;
}

}  // namespace bary
