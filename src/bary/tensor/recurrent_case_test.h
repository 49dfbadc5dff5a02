// SPDX-License-Identifier: Apache-2.0
// What the tests of recurrent layers share: their formula in double, and one run with all its results and gradients.
#pragma once
#include "bary/tensor/gradient_check_test.h"
#include "bary/tensor/recurrent.h"

namespace bary {

struct RecurrentSizes {
  Cell cell = Cell::lstm;
  int64_t B = 2, T = 3, C = 4, H = 5;
  std::vector<int64_t> lengths = {};
  int64_t truncate = 0;

  int64_t G() const { return kernel::gates_of(cell); }
  bool lstm() const { return cell == Cell::lstm; }
  std::vector<Shape> inputs() const {  // x, weights, biases, first h, first c
    std::vector<Shape> all{{B, T, C}, {G() * H, C}, {G() * H, H}, {G() * H}, {G() * H}, {B, H}};
    if (lstm()) all.push_back({B, H});
    return all;
  }
  RecurrentOptions options() const { return {cell, lengths, truncate}; }
  std::string name() const {
    const char* cells[] = {"rnn", "lstm", "gru"};
    return std::string(cells[static_cast<int>(cell)]) + " B " + std::to_string(B) + " T " + std::to_string(T) + " H " +
           std::to_string(H) + (lengths.empty() ? "" : " with lengths");
  }
};

constexpr float kWeightScale = 0.4f;  // of W_hh, which would drive every gate to its ends at 1

using RecurrentFunction = RecurrentOutput (*)(const Tensor&, const RecurrentWeights&, const RecurrentState&,
                                              const RecurrentOptions&);
inline RecurrentOutput recurrent_of(const RecurrentSizes& s, const std::vector<Tensor>& in,
                                    RecurrentFunction f = recurrent) {
  return f(in[0], {in[1], in[2] * kWeightScale, in[3], in[4]}, {in[5], s.lstm() ? in[6] : Tensor()}, s.options());
}

struct RecurrentDoubles {
  Doubles y, h, c;
};
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline RecurrentDoubles recurrent_formula(const RecurrentSizes& s, const std::vector<Doubles>& in) {
  auto at = [](int64_t i) { return static_cast<size_t>(i); };
  RecurrentDoubles out{Doubles(at(s.B * s.T * s.H), 0.0), in[5], s.lstm() ? in[6] : Doubles()};
  const int64_t n = s.G() * s.H;
  for (int64_t b = 0; b < s.B; ++b) {
    double *h = out.h.data() + b * s.H, *c = s.lstm() ? out.c.data() + b * s.H : nullptr;
    for (int64_t t = 0; t < (s.lengths.empty() ? s.T : s.lengths[at(b)]); ++t) {
      Doubles a = in[3], u = in[4];
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < s.C; ++j) a[at(i)] += in[0][at((b * s.T + t) * s.C + j)] * in[1][at(i * s.C + j)];
        for (int64_t j = 0; j < s.H; ++j) u[at(i)] += h[j] * in[2][at(i * s.H + j)] * static_cast<double>(kWeightScale);
      }
      for (int64_t j = 0; j < s.H; ++j) {
        auto gate = [&](int64_t g) { return a[at(g * s.H + j)] + u[at(g * s.H + j)]; };
        if (s.cell == Cell::rnn) h[j] = std::tanh(gate(0));
        if (s.lstm()) {
          c[j] = sigmoid(gate(1)) * c[j] + sigmoid(gate(0)) * std::tanh(gate(2));
          h[j] = sigmoid(gate(3)) * std::tanh(c[j]);
        }
        if (s.cell == Cell::gru) {
          const double z = sigmoid(gate(1)), m = std::tanh(a[at(2 * s.H + j)] + sigmoid(gate(0)) * u[at(2 * s.H + j)]);
          h[j] = (1 - z) * m + z * h[j];
        }
        out.y[at((b * s.T + t) * s.H + j)] = h[j];
      }
    }
  }
  return out;
}

// Values and, of a loss over all three results with random weights, the gradients of all inputs
struct RecurrentRun {
  Floats y, h, c;
  std::vector<Floats> gradients;
  Floats all() const {
    Floats v = y;
    kernel::append(v, h);
    kernel::append(v, c);
    for (const Floats& g : gradients) kernel::append(v, g);
    return v;
  }
};
inline Tensor weighted(const Tensor& x, uint64_t seed) { return sum(x * random_tensor(x.shape(), seed)); }
inline RecurrentRun run_recurrent(const RecurrentSizes& s, RecurrentFunction f = recurrent) {
  std::vector<Tensor> in;
  for (const Shape& shape : s.inputs()) in.push_back(random_tensor(shape, 100 + in.size()).require_grad());
  Tape tape;
  const RecurrentOutput out = recurrent_of(s, in, f);
  Tensor loss = weighted(out.y, 7) + weighted(out.last.h, 8);
  if (s.lstm()) loss = loss + weighted(out.last.c, 9);
  RecurrentRun r{out.y.to_vector(), out.last.h.to_vector(), s.lstm() ? out.last.c.to_vector() : Floats(), {}};
  tape.backward(loss);
  for (const Tensor& x : in) r.gradients.push_back(x.grad_vector());
  return r;
}

}  // namespace bary
