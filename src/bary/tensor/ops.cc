// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/ops.h"

#include <cmath>
#include <limits>

#include "bary/kernel/loss.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

void check_same(const char* op, const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape() == b.shape(), "{}: shapes {} and {} differ; they must be equal", op, a.shape().str(),
             b.shape().str());
}

// value(r, c) into y; the pullbacks below add value(r, c) to a slot
template <class F>
void write_each(const Tensor& y, F value) {
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t c = 0; c < y.channels(); ++c) y.row(r)[c] = value(r, c);
}
template <class F>
void give_each(const Tensor& x, F value) {
  auto g = x.grad();
  if (!g) return;
  for (int64_t r = 0; r < x.rows(); ++r) {
    float* to = g.data + r * g.stride;
    for (int64_t c = 0; c < x.channels(); ++c) to[c] = (g.accumulate ? to[c] : 0.0f) + value(r, c);
  }
}
auto values(const Tensor& t) {
  return [p = t.data(), s = t.stride()](int64_t r, int64_t c) { return p[r * s + c]; };
}
auto gradients(const Tensor& t) {
  return [p = t.cotangent(), s = t.stride()](int64_t r, int64_t c) { return p[r * s + c]; };
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  check_same("add", a, b);
  Tensor y(a.shape());
  write_each(y, [va = values(a), vb = values(b)](int64_t r, int64_t c) { return va(r, c) + vb(r, c); });
  record(
      y,
      [=] {
        give_each(a, gradients(y));
        y.pass_gradient_to(b);
      },
      a, b);
  return y;
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  check_same("multiply", a, b);
  Tensor y(a.shape());
  write_each(y, [va = values(a), vb = values(b)](int64_t r, int64_t c) { return va(r, c) * vb(r, c); });
  record(
      y,
      [=] {
        auto g = gradients(y);
        give_each(a, [=, v = values(b)](int64_t r, int64_t c) { return g(r, c) * v(r, c); });
        give_each(b, [=, v = values(a)](int64_t r, int64_t c) { return g(r, c) * v(r, c); });
      },
      a, b);
  return y;
}

Tensor operator*(const Tensor& a, float k) {
  Tensor y(a.shape());
  write_each(y, [v = values(a), k](int64_t r, int64_t c) { return v(r, c) * k; });
  record(
      y, [=] { give_each(a, [g = gradients(y), k](int64_t r, int64_t c) { return g(r, c) * k; }); }, a);
  return y;
}

Tensor sum(const Tensor& x) {
  Tensor y(Shape{1});
  double total = 0;
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t c = 0; c < x.channels(); ++c) total += x.row(r)[c];
  y.data()[0] = static_cast<float>(total);
  record(
      y, [=] { give_each(x, [g = y.cotangent()[0]](int64_t, int64_t) { return g; }); }, x);
  return y;
}

Tensor activation(const Tensor& x, Activation act) {
  Tensor y(x.shape()), derivative(x.shape());
  write_each(y, values(x));
  kernel::activate_rows(act, y.rows(), y.channels(), y.data(), y.stride(), derivative.data(), derivative.stride());
  record(
      y,
      [=] {
        give_each(x, [g = gradients(y), d = values(derivative)](int64_t r, int64_t c) { return g(r, c) * d(r, c); });
      },
      x);
  return y;
}

namespace {
// C_b (M,N) += sum over k of a(b,m,k) b(b,k,n), in increasing k, by fused multiply-add: the kernels' chain, written
// plainly
struct Batched {
  int64_t batch, m, n, k;
};
template <class A, class B, class C>
void multiply_each(Batched s, A a, B b, C c) {
  for (int64_t i = 0; i < s.batch; ++i)
    for (int64_t m = 0; m < s.m; ++m)
      for (int64_t n = 0; n < s.n; ++n) {
        float acc = 0;
        for (int64_t k = 0; k < s.k; ++k) acc = std::fma(a(i, m, k), b(i, k, n), acc);
        c(i, m, n, acc);
      }
}
auto at(const float* p, int64_t rows, int64_t stride) {
  return [=](int64_t i, int64_t r, int64_t c) { return p[(i * rows + r) * stride + c]; };
}
auto at_transposed(const float* p, int64_t rows, int64_t stride) {
  return [=](int64_t i, int64_t r, int64_t c) { return p[(i * rows + c) * stride + r]; };
}
auto put(float* p, int64_t rows, int64_t stride, bool accumulate) {
  return [=](int64_t i, int64_t r, int64_t c, float v) {
    float& to = p[(i * rows + r) * stride + c];
    to = accumulate ? to + v : v;
  };
}
}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape().rank() == 3 && b.shape().rank() == 3 && a.dim(0) == b.dim(0) && a.dim(2) == b.dim(1),
             "matmul: shapes {} and {}; expected (B,T,S) and (B,S,D)", a.shape().str(), b.shape().str());
  int64_t B = a.dim(0), T = a.dim(1), S = a.dim(2), D = b.dim(2);
  Tensor y(Shape{B, T, D});
  multiply_each({B, T, D, S}, at(a.data(), T, a.stride()), at(b.data(), S, b.stride()),
                put(y.data(), T, y.stride(), false));
  record(
      y,
      [=] {
        auto g = at(y.cotangent(), T, y.stride());
        if (auto s = a.grad())
          multiply_each({B, T, S, D}, g, at_transposed(b.data(), S, b.stride()),
                        put(s.data, T, s.stride, s.accumulate));
        if (auto s = b.grad())
          multiply_each({B, S, D, T}, at_transposed(a.data(), T, a.stride()), g,
                        put(s.data, S, s.stride, s.accumulate));
      },
      a, b);
  return y;
}

Tensor matmul_nt(const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape().rank() == 3 && b.shape().rank() == 3 && a.dim(0) == b.dim(0) && a.dim(2) == b.dim(2),
             "matmul_nt: shapes {} and {}; expected (B,T,D) and (B,S,D)", a.shape().str(), b.shape().str());
  int64_t B = a.dim(0), T = a.dim(1), D = a.dim(2), S = b.dim(1);
  Tensor y(Shape{B, T, S});
  multiply_each({B, T, S, D}, at(a.data(), T, a.stride()), at_transposed(b.data(), S, b.stride()),
                put(y.data(), T, y.stride(), false));
  record(
      y,
      [=] {
        if (auto s = a.grad())
          multiply_each({B, T, D, S}, at(y.cotangent(), T, y.stride()), at(b.data(), S, b.stride()),
                        put(s.data, T, s.stride, s.accumulate));
        if (auto s = b.grad())
          multiply_each({B, S, D, T}, at_transposed(y.cotangent(), T, y.stride()), at(a.data(), T, a.stride()),
                        put(s.data, S, s.stride, s.accumulate));
      },
      a, b);
  return y;
}

Tensor masked(const Tensor& x, Mask mask, int64_t window) {
  if (mask == Mask::full) return x;
  BARY_CHECK(x.shape().rank() == 3, "masked: the scores are {}, expected (B,T,S)", x.shape().str());
  BARY_CHECK(mask != Mask::window || window > 0, "masked: a window of {}; it must be at least 1", window);
  int64_t T = x.dim(1);
  auto seen = [=](int64_t r, int64_t c) { return c <= r % T && (mask != Mask::window || c > r % T - window); };
  Tensor y(x.shape());
  // -inf and not -1e9: exact zeros after the softmax, in any precision
  write_each(y, [=, v = values(x)](int64_t r, int64_t c) {
    return seen(r, c) ? v(r, c) : -std::numeric_limits<float>::infinity();
  });
  record(
      y, [=] { give_each(x, [=, g = gradients(y)](int64_t r, int64_t c) { return seen(r, c) ? g(r, c) : 0.0f; }); }, x);
  return y;
}

Tensor softmax(const Tensor& x) {
  Tensor y(x.shape());
  kernel::softmax_rows(x.rows(), x.channels(), x.data(), x.stride(), y.data(), y.stride());
  record(
      y,
      [=] {
        auto g = gradients(y);
        auto v = values(y);
        std::vector<float> dot(static_cast<size_t>(y.rows()), 0.0f);
        for (int64_t r = 0; r < y.rows(); ++r)
          for (int64_t c = 0; c < y.channels(); ++c) dot[static_cast<size_t>(r)] += g(r, c) * v(r, c);
        give_each(x, [&](int64_t r, int64_t c) { return v(r, c) * (g(r, c) - dot[static_cast<size_t>(r)]); });
      },
      x);
  return y;
}

Tensor columns(const Tensor& x, int64_t first, int64_t count) {
  BARY_CHECK(first >= 0 && count > 0 && first + count <= x.channels(),
             "columns: {} from {} of a tensor with {} channels", count, first, x.channels());
  Tensor y(x.shape().with_channels(count));
  write_each(y, [=, v = values(x)](int64_t r, int64_t c) { return v(r, first + c); });
  record(
      y,
      [=] {
        give_each(x, [=, g = gradients(y)](int64_t r, int64_t c) {
          return c >= first && c < first + count ? g(r, c - first) : 0.0f;
        });
      },
      x);
  return y;
}

Tensor concat(std::span<const Tensor> parts) {
  BARY_CHECK(!parts.empty(), "concat: no tensors given");
  int64_t total = 0;
  bool wanted = false;
  for (const Tensor& p : parts) {
    BARY_CHECK(p.rows() == parts[0].rows(), "concat: {} and {} rows", parts[0].rows(), p.rows());
    total += p.channels();
    wanted = wanted || p.needs_grad();
  }
  Tensor y(parts[0].shape().with_channels(total)), any = parts[0];
  int64_t offset = 0;
  for (const Tensor& p : parts) {
    for (int64_t r = 0; r < y.rows(); ++r) std::copy_n(p.row(r), p.channels(), y.row(r) + offset);
    offset += p.channels();
    if (p.needs_grad()) any = p;
  }
  record(
      y,
      [y, all = std::vector<Tensor>(parts.begin(), parts.end())] {
        int64_t first = 0;
        for (const Tensor& p : all) {
          give_each(p, [first, g = gradients(y)](int64_t r, int64_t c) { return g(r, first + c); });
          first += p.channels();
        }
      },
      any);
  return y;
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  BARY_CHECK(x.shape().rank() == 3 && heads > 0 && x.channels() % heads == 0,
             "split_heads: {} does not divide into {} heads", x.shape().str(), heads);
  int64_t B = x.dim(0), T = x.dim(1), D = x.channels() / heads;
  Tensor y(Shape{B * heads, T, D});
  write_each(y,
             [=, v = values(x)](int64_t r, int64_t c) { return v(r / T / heads * T + r % T, r / T % heads * D + c); });
  record(
      y,
      [=] {
        give_each(
            x, [=, g = gradients(y)](int64_t r, int64_t c) { return g((r / T * heads + c / D) * T + r % T, c % D); });
      },
      x);
  return y;
}

Tensor merge_heads(const Tensor& x, int64_t heads) {
  BARY_CHECK(x.shape().rank() == 3 && heads > 0 && x.dim(0) % heads == 0,
             "merge_heads: {} is not a multiple of {} heads", x.shape().str(), heads);
  int64_t B = x.dim(0) / heads, T = x.dim(1), D = x.dim(2);
  Tensor y(Shape{B, T, heads * D});
  write_each(y, [=, v = values(x)](int64_t r, int64_t c) { return v((r / T * heads + c / D) * T + r % T, c % D); });
  record(
      y,
      [=] {
        give_each(x, [=, g = gradients(y)](int64_t r, int64_t c) {
          return g(r / T / heads * T + r % T, r / T % heads * D + c);
        });
      },
      x);
  return y;
}

Tensor cross_entropy(const Tensor& logits, std::span<const int32_t> targets) {
  BARY_CHECK(static_cast<int64_t>(targets.size()) == logits.rows(), "cross_entropy: {} targets for {} rows",
             targets.size(), logits.rows());
  for (int32_t t : targets)
    BARY_CHECK(t < logits.channels(), "cross_entropy: target {}, but there are {} logits", t, logits.channels());
  Tensor gradient(logits.shape()), loss(Shape{1});
  write_each(gradient, values(logits));
  std::vector<double> losses(targets.size());
  kernel::cross_entropy_rows(logits.rows(), logits.channels(), gradient.data(), gradient.stride(), targets.data(), 1.0f,
                             losses.data());
  double total = 0;
  for (double l : losses) total += l;
  loss.data()[0] = static_cast<float>(total);
  record(
      loss,
      [=] {
        give_each(logits,
                  [g = loss.cotangent()[0], d = values(gradient)](int64_t r, int64_t c) { return g * d(r, c); });
      },
      logits);
  return loss;
}

Tensor dropout(const Tensor& x, const kernel::DropoutSite& site, DropoutRows rows) {
  BARY_CHECK(site.p >= 0 && site.p < 1, "dropout: probability {}; it must be at least 0 and below 1", site.p);
  if (site.p == 0) return x;
  int64_t T = x.shape().rank() == 3 ? x.dim(1) : x.rows();
  auto key = [=](int64_t r) {
    return kernel::dropout_row_key(site, rows.sequence + static_cast<uint64_t>(r / T), 0,
                                   static_cast<uint64_t>(rows.first + r % T));
  };
  Tensor y(x.shape());
  for (int64_t r = 0; r < y.rows(); ++r) kernel::dropout_row(x.row(r), y.row(r), y.channels(), key(r), 0, site.p);
  record(
      y,
      [=] {
        Tensor d(y.shape());
        for (int64_t r = 0; r < y.rows(); ++r)
          kernel::dropout_row(y.cotangent() + r * y.stride(), d.row(r), y.channels(), key(r), 0, site.p);
        give_each(x, values(d));
      },
      x);
  return y;
}

}  // namespace bary
