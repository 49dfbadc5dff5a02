// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/loss.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

void check_same(const char* op, const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape() == b.shape(), "{}: shapes {} and {} differ; they must be equal", op, a.shape().str(),
             b.shape().str());
}

// Rows a thread takes at a time, so that a small tensor stays with one.
int64_t row_grain(const Tensor& x) {
  return std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(x.channels(), 1));
}

// value(r, c) into y; the pullbacks below add value(r, c) to a slot
template <class F>
void write_each(const Tensor& y, F value) {
  parallel_for(y.rows(), row_grain(y), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t c = 0; c < y.channels(); ++c) y.row(r)[c] = value(r, c);
  });
}
template <class F>
void give_each(const Tensor& x, F value) {
  auto g = x.grad();
  if (!g) return;
  parallel_for(x.rows(), row_grain(x), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* to = g.data + r * g.stride;
      for (int64_t c = 0; c < x.channels(); ++c) to[c] = (g.accumulate ? to[c] : 0.0f) + value(r, c);
    }
  });
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

struct Matrices {  // one a batch entry, `rows` rows apart by stride
  const float* data;
  int64_t rows, stride;
  const float* of(int64_t i) const { return data + i * rows * stride; }
};
Matrices values_of(const Tensor& x) { return {x.data(), x.dim(1), x.stride()}; }
Matrices gradient_of(const Tensor& y) { return {y.cotangent(), y.dim(1), y.stride()}; }

// f(i) for each of a batch of products of `size` multiply-adds
template <class F>
void each_product(int64_t batch, int64_t size, const F& f) {
  parallel_for(batch, std::max<int64_t>(1, (int64_t{1} << 16) / std::max<int64_t>(size, 1)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i);
  });
}

// to_i (M,N) (+)= A_i B_i, or A_i B_i^T
void multiply_each(int64_t batch, Matrices a, Matrices b, kernel::Form form, int64_t depth, int64_t n,
                   GradientSlot to) {
  each_product(batch, a.rows * n * depth, [&](int64_t i) {
    float* c = to.data + i * a.rows * to.stride;
    const kernel::Right right{b.of(i), b.stride, form};
    if (!to.accumulate) return kernel::gemm({a.rows, n, depth, a.of(i), a.stride, c, to.stride}, right);
    Tensor own(Shape{a.rows, n});
    kernel::gemm({a.rows, n, depth, a.of(i), a.stride, own.data(), own.stride()}, right);
    kernel::add_rows(a.rows, n, own.data(), own.stride(), c, to.stride);
  });
}

// to_i (M,N) (+)= A_i^T B_i
void multiply_each_transposed(int64_t batch, Matrices a, Matrices b, int64_t m, int64_t n, GradientSlot to) {
  each_product(batch, a.rows * m * n, [&](int64_t i) {
    kernel::RowStart start;
    start.from_zero = !to.accumulate;
    start.group = to.accumulate ? a.rows : 0;  // the product is a sum of its own before it is added
    kernel::gemm_transposed(m, n, a.rows, a.of(i), a.stride, b.of(i), b.stride, to.data + i * m * to.stride, to.stride,
                            start);
  });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape().rank() == 3 && b.shape().rank() == 3 && a.dim(0) == b.dim(0) && a.dim(2) == b.dim(1),
             "matmul: shapes {} and {}; expected (B,T,S) and (B,S,D)", a.shape().str(), b.shape().str());
  const int64_t B = a.dim(0), T = a.dim(1), S = a.dim(2), D = b.dim(2);
  Tensor y(Shape{B, T, D});
  multiply_each(B, values_of(a), values_of(b), kernel::Form::rows, S, D, {y.data(), y.stride(), false});
  record(
      y,
      [=] {
        if (auto s = a.grad()) multiply_each(B, gradient_of(y), values_of(b), kernel::Form::transposed, D, S, s);
        if (auto s = b.grad()) multiply_each_transposed(B, values_of(a), gradient_of(y), S, D, s);
      },
      a, b);
  return y;
}

Tensor matmul_nt(const Tensor& a, const Tensor& b) {
  BARY_CHECK(a.shape().rank() == 3 && b.shape().rank() == 3 && a.dim(0) == b.dim(0) && a.dim(2) == b.dim(2),
             "matmul_nt: shapes {} and {}; expected (B,T,D) and (B,S,D)", a.shape().str(), b.shape().str());
  const int64_t B = a.dim(0), T = a.dim(1), D = a.dim(2), S = b.dim(1);
  Tensor y(Shape{B, T, S});
  multiply_each(B, values_of(a), values_of(b), kernel::Form::transposed, D, S, {y.data(), y.stride(), false});
  record(
      y,
      [=] {
        if (auto s = a.grad()) multiply_each(B, gradient_of(y), values_of(b), kernel::Form::rows, S, D, s);
        if (auto s = b.grad()) multiply_each_transposed(B, gradient_of(y), values_of(a), S, D, s);
      },
      a, b);
  return y;
}

namespace {

template <class Seen>
Tensor keep_where(const Tensor& x, const Seen& seen) {
  Tensor y(x.shape());
  // -inf and not -1e9: exact zeros after the softmax, in any precision
  write_each(y, [=, v = values(x)](int64_t r, int64_t c) {
    return seen(r, c) ? v(r, c) : -std::numeric_limits<float>::infinity();
  });
  record(
      y, [=] { give_each(x, [=, g = gradients(y)](int64_t r, int64_t c) { return seen(r, c) ? g(r, c) : 0.0f; }); }, x);
  return y;
}

}  // namespace

Tensor masked(const Tensor& x, Mask mask, int64_t window) {
  if (mask == Mask::full) return x;
  BARY_CHECK(x.shape().rank() == 3, "masked: the scores are {}, expected (B,T,S)", x.shape().str());
  BARY_CHECK(mask != Mask::window || window > 0, "masked: a window of {}; it must be at least 1", window);
  return keep_where(x, [=, T = x.dim(1)](int64_t r, int64_t c) {
    return c <= r % T && (mask != Mask::window || c > r % T - window);
  });
}

Tensor masked_from(const Tensor& x, std::vector<int64_t> end) {
  BARY_CHECK(static_cast<int64_t>(end.size()) == x.rows(), "masked_from: {} ends for {} rows", end.size(), x.rows());
  return keep_where(x, [end = std::move(end)](int64_t r, int64_t c) { return c < end[static_cast<size_t>(r)]; });
}

Tensor softmax(const Tensor& x) {
  Tensor y(x.shape());
  parallel_for(x.rows(), row_grain(x), [&](int64_t begin, int64_t end) {
    kernel::softmax_rows(end - begin, x.channels(), x.row(begin), x.stride(), y.row(begin), y.stride());
  });
  record(
      y,
      [=] {
        auto g = gradients(y);
        auto v = values(y);
        std::vector<float> dot(static_cast<size_t>(y.rows()), 0.0f);
        parallel_for(y.rows(), row_grain(y), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r)
            for (int64_t c = 0; c < y.channels(); ++c) dot[static_cast<size_t>(r)] += g(r, c) * v(r, c);
        });
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
  auto masked = [=](const float* from, int64_t stride, const Tensor& to) {
    parallel_for(to.rows(), row_grain(to), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const uint32_t key = kernel::dropout_row_key(site, rows.sequence + static_cast<uint64_t>(r / T), 0,
                                                     static_cast<uint64_t>(rows.first + r % T));
        kernel::dropout_row(from + r * stride, to.row(r), to.channels(), key, 0, site.p);
      }
    });
  };
  Tensor y(x.shape());
  masked(x.data(), x.stride(), y);
  record(
      y,
      [=] {
        Tensor d(y.shape());
        masked(y.cotangent(), y.stride(), d);
        give_each(x, values(d));
      },
      x);
  return y;
}

}  // namespace bary
