// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as they are written on paper, one step after another: read it beside recurrent.cc.
#include <algorithm>
#include <vector>

#include "bary/base/portable_math.h"
#include "bary/tensor/ops.h"
#include "bary/tensor/recurrent.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

// f of every number; its slope is given the value, not the argument
Tensor each(const Tensor& x, double (*f)(double), float (*slope)(float)) {
  Tensor y(x.shape());
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t c = 0; c < y.channels(); ++c) y.row(r)[c] = static_cast<float>(f(static_cast<double>(x.row(r)[c])));
  record(
      y,
      [=] {
        auto g = x.grad().cleared(x.rows());
        for (int64_t r = 0; g && r < y.rows(); ++r)
          for (int64_t c = 0; c < y.channels(); ++c)
            g.data[r * g.stride + c] += y.cotangent()[r * y.stride() + c] * slope(y.row(r)[c]);
      },
      x);
  return y;
}
Tensor sigmoid(const Tensor& x) {
  return each(
      x, [](double v) { return 1 / (1 + portable::exp(-v)); }, [](float y) { return y * (1 - y); });
}
Tensor tanh(const Tensor& x) {
  return each(
      x, [](double v) { return 2 / (1 + portable::exp(-2 * v)) - 1; }, [](float y) { return 1 - y * y; });
}

Tensor step_of(const Tensor& x, int64_t t) {  // x[:, t]   (B,T,C) -> (B,C)
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2);
  Tensor y(Shape{B, C});
  for (int64_t b = 0; b < B; ++b) std::copy_n(x.row(b * T + t), C, y.row(b));
  record(
      y,
      [=] {
        auto g = x.grad().cleared(B * T);
        for (int64_t b = 0; g && b < B; ++b)
          for (int64_t c = 0; c < C; ++c) g.data[(b * T + t) * g.stride + c] += y.cotangent()[b * y.stride() + c];
      },
      x);
  return y;
}

Tensor in_time(const std::vector<Tensor>& steps) {  // T of (B,H) -> (B,T,H)
  const int64_t T = static_cast<int64_t>(steps.size()), B = steps[0].dim(0), H = steps[0].dim(1);
  Tensor y(Shape{B, T, H}), any = steps[0];
  for (int64_t t = 0; t < T; ++t) {
    const Tensor& step = steps[static_cast<size_t>(t)];
    for (int64_t b = 0; b < B; ++b) std::copy_n(step.row(b), H, y.row(b * T + t));
    if (step.needs_grad()) any = step;
  }
  record(
      y,
      [=] {
        for (int64_t t = 0; t < T; ++t) {
          auto g = steps[static_cast<size_t>(t)].grad().cleared(B);
          for (int64_t b = 0; g && b < B; ++b)
            for (int64_t c = 0; c < H; ++c) g.data[b * g.stride + c] += y.cotangent()[(b * T + t) * y.stride() + c];
        }
      },
      any);
  return y;
}

Tensor constant(const Tensor& x) { return Tensor::from(x.shape(), x.to_vector()); }  // no gradient passes

// Which sequences still run at step t: ones in their rows of `on` and zeros elsewhere, the reverse in `off`
struct Running {
  Running(const RecurrentOptions& o, int64_t B, int64_t H, int64_t t) : on(Shape{B, H}), off(Shape{B, H}) {
    for (int64_t b = 0; b < B; ++b) {
      const bool runs = o.lengths.empty() || t < o.lengths[static_cast<size_t>(b)];
      std::fill_n(on.row(b), H, runs ? 1.0f : 0.0f);
      std::fill_n(off.row(b), H, runs ? 0.0f : 1.0f);
    }
  }
  Tensor choose(const Tensor& yes, const Tensor& no) const { return yes * on + no * off; }
  Tensor on, off;
};

RecurrentState next(Cell cell, const Tensor& a, const Tensor& u, const RecurrentState& s) {
  const int64_t H = s.h.channels();
  auto gate = [H](const Tensor& x, int64_t i) { return columns(x, i * H, H); };
  if (cell == Cell::rnn) return {tanh(a + u), {}};
  if (cell == Cell::lstm) {
    Tensor i = sigmoid(gate(a + u, 0)), f = sigmoid(gate(a + u, 1)), g = tanh(gate(a + u, 2)),
           o = sigmoid(gate(a + u, 3));
    Tensor c = f * s.c + i * g;
    return {o * tanh(c), c};
  }
  Tensor r = sigmoid(gate(a + u, 0)), z = sigmoid(gate(a + u, 1)), n = tanh(gate(a, 2) + r * gate(u, 2));
  return {n + z * (s.h + n * -1.0f), {}};  // (1 - z) n + z h
}

}  // namespace

RecurrentOutput recurrent_by_definition(const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                                        const RecurrentOptions& o) {
  const int64_t H = check_recurrent("recurrent_by_definition", x, w, first, o), B = x.dim(0);
  RecurrentState s{first.h.defined() ? first.h : Tensor::zeros({B, H}), {}};
  if (o.cell == Cell::lstm) s.c = first.c.defined() ? first.c : Tensor::zeros({B, H});
  std::vector<Tensor> y;
  for (int64_t t = 0; t < x.dim(1); ++t) {
    const Running running(o, B, H, t);
    if (o.truncate > 0 && t > 0 && t % o.truncate == 0) {  // one that is over keeps the way back to its last step
      s.h = running.choose(constant(s.h), s.h);
      if (s.c.defined()) s.c = running.choose(constant(s.c), s.c);
    }
    const RecurrentState after = next(o.cell, linear_by_definition(step_of(x, t), w.weight_ih, w.bias_ih),
                                      linear_by_definition(s.h, w.weight_hh, w.bias_hh), s);
    y.push_back(after.h * running.on);
    s.h = running.choose(after.h, s.h);
    if (s.c.defined()) s.c = running.choose(after.c, s.c);
  }
  return {in_time(y), s};
}

}  // namespace bary
