// SPDX-License-Identifier: Apache-2.0
// Products, activations, norms, softmax with its loss, rotations and attention once more as their formulas, in double
// and in plain loops: what the kernels are tested against. Slow, and without a claim to the last bit. Matrices are
// dense, row by row. What one test alone needs stands there: recurrent cells, additive scores, AdamW, the prefix mean.
// The label-smoothed loss has no formula here; it is compared with PyTorch's (tests/parity).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bary/kernel/attention.h"
#include "bary/kernel/gemm.h"

namespace bary::kernel::reference {

using Doubles = std::vector<double>;

inline size_t at(int64_t row, int64_t column, int64_t columns) { return static_cast<size_t>(row * columns + column); }

// a (M,K) b (K,N)
inline Doubles product(const Doubles& a, const Doubles& b, int64_t m, int64_t n, int64_t k) {
  Doubles c(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) c[at(i, j, n)] += a[at(i, l, k)] * b[at(l, j, n)];
  return c;
}
inline Doubles transposed(const Doubles& a, int64_t rows, int64_t columns) {
  Doubles t(a.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) t[at(j, i, rows)] = a[at(i, j, columns)];
  return t;
}

struct ValueAndSlope {
  double value, slope;
};
inline ValueAndSlope activate(Activation act, double x) {
  constexpr double kPi = 3.14159265358979323846;
  auto with_sigmoid = [x](double u2, double du2) {  // x sigmoid(u2)
    double s = 1 / (1 + std::exp(-u2)), other = 1 / (1 + std::exp(u2));
    return ValueAndSlope{x * s, s + x * s * other * du2};
  };
  switch (act) {
    case Activation::none:
      return {x, 1};
    case Activation::gelu: {
      double p = 0.5 * std::erfc(-x / std::sqrt(2.0)), density = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
      return {x * p, p + x * density};
    }
    case Activation::gelu_tanh: {
      double c = 2 * std::sqrt(2 / kPi);
      return with_sigmoid(c * (x + 0.044715 * x * x * x), c * (1 + 3 * 0.044715 * x * x));
    }
    case Activation::relu:
      return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0};
    case Activation::silu:
      return with_sigmoid(x, 1);
    case Activation::tanh:
      return {std::tanh(x), 1 / (std::cosh(x) * std::cosh(x))};
  }
  return {x, 1};
}

struct Normalised {
  double mean = 0, rstd = 0;
  Doubles h;  // (x - mean) rstd
};
inline Normalised normalise(const double* x, int64_t n, bool layer, double eps) {
  Normalised r;
  for (int64_t i = 0; layer && i < n; ++i) r.mean += x[i] / static_cast<double>(n);
  double square = 0;
  for (int64_t i = 0; i < n; ++i) square += (x[i] - r.mean) * (x[i] - r.mean) / static_cast<double>(n);
  r.rstd = 1 / std::sqrt(square + eps);
  for (int64_t i = 0; i < n; ++i) r.h.push_back((x[i] - r.mean) * r.rstd);
  return r;
}
// d x of one row whose upstream gradient times weight is u
inline Doubles normalise_backward(const Normalised& r, const Doubles& u, bool layer) {
  double mean_u = 0, mean_uh = 0, n = static_cast<double>(u.size());
  for (size_t i = 0; i < u.size(); ++i) {
    mean_u += layer ? u[i] / n : 0;
    mean_uh += u[i] * r.h[i] / n;
  }
  Doubles dx(u.size());
  for (size_t i = 0; i < u.size(); ++i) dx[i] = r.rstd * (u[i] - mean_u - r.h[i] * mean_uh);
  return dx;
}

inline Doubles softmax(const double* x, int64_t n) {
  double top = *std::max_element(x, x + n), sum = 0;
  Doubles y(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) sum += y[static_cast<size_t>(i)] = std::exp(x[i] - top);
  for (double& v : y) v /= sum;
  return y;
}
inline double cross_entropy(const double* x, int64_t n, int64_t target) {
  double top = *std::max_element(x, x + n), sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
  return std::log(sum) + top - x[target];
}

// Channels i and i + D/2 turn by position theta^(-2i/D).
inline void rotate(double* head, int64_t D, double position, double theta, double sign) {
  for (int64_t i = 0; i < D / 2; ++i) {
    double angle = position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(D));
    double c = std::cos(angle), s = sign * std::sin(angle), a = head[i], b = head[i + D / 2];
    head[i] = a * c - b * s;
    head[i + D / 2] = b * c + a * s;
  }
}

// 1/(1-p) or 0, the factor of key `column` for query row t
inline double kept_times(const AttentionHead& h, int64_t t, int64_t column) {
  if (!(h.dropout.p > 0)) return 1;
  uint32_t row = dropout_row_key(h.dropout, h.sequence, h.head, static_cast<uint64_t>(h.first + t));
  bool keep = dropout_keeps(row, static_cast<uint32_t>(column), dropout_threshold(h.dropout.p));
  return keep ? 1 / (1 - static_cast<double>(h.dropout.p)) : 0;
}

struct AttentionResult {
  Doubles pattern;  // (T,S) before dropout
  Doubles out;      // (T,D)
};
inline AttentionResult attention(const AttentionHead& h, const Doubles& q, const Doubles& k, const Doubles& v) {
  AttentionResult r{Doubles(static_cast<size_t>(h.T * h.S), 0.0), Doubles(static_cast<size_t>(h.T * h.D), 0.0)};
  for (int64_t t = 0; t < h.T; ++t) {
    double* p = r.pattern.data() + t * h.S;
    const int64_t position = h.first + t;
    for (int64_t j = 0; j < h.S; ++j) {
      bool seen = (!h.causal || j <= position || j < h.prefix) && (h.window == 0 || j > position - h.window);
      double dot = 0;
      for (int64_t d = 0; d < h.D; ++d) dot += q[at(t, d, h.D)] * k[at(j, d, h.D)];
      double score = static_cast<double>(h.scale) * dot -
                     static_cast<double>(h.slope) * std::fabs(static_cast<double>(position - j));
      p[j] = seen ? score : -std::numeric_limits<double>::infinity();
    }
    Doubles soft = softmax(p, h.S);
    std::copy(soft.begin(), soft.end(), p);
    for (int64_t j = 0; j < h.S; ++j)
      for (int64_t d = 0; d < h.D; ++d) r.out[at(t, d, h.D)] += p[j] * kept_times(h, t, j) * v[at(j, d, h.D)];
  }
  return r;
}

struct AttentionGradients {
  Doubles dq, dk, dv;
};
inline AttentionGradients attention_backward(const AttentionHead& h, const Doubles& q, const Doubles& k,
                                             const Doubles& v, const Doubles& dout) {
  AttentionGradients g{Doubles(q.size(), 0.0), Doubles(k.size(), 0.0), Doubles(v.size(), 0.0)};
  AttentionResult r = attention(h, q, k, v);
  Doubles dp(static_cast<size_t>(h.S));
  for (int64_t t = 0; t < h.T; ++t) {
    double mean = 0;  // of d p under p
    for (int64_t j = 0; j < h.S; ++j) {
      double dot = 0, p = r.pattern[at(t, j, h.S)], times = kept_times(h, t, j);
      for (int64_t d = 0; d < h.D; ++d) {
        dot += dout[at(t, d, h.D)] * v[at(j, d, h.D)];
        g.dv[at(j, d, h.D)] += p * times * dout[at(t, d, h.D)];
      }
      dp[static_cast<size_t>(j)] = dot * times;
      mean += p * dot * times;
    }
    for (int64_t j = 0; j < h.S; ++j) {
      double ds = r.pattern[at(t, j, h.S)] * (dp[static_cast<size_t>(j)] - mean) * static_cast<double>(h.scale);
      for (int64_t d = 0; d < h.D; ++d) {
        g.dq[at(t, d, h.D)] += ds * k[at(j, d, h.D)];
        g.dk[at(j, d, h.D)] += ds * q[at(t, d, h.D)];
      }
    }
  }
  return g;
}

}  // namespace bary::kernel::reference
