// SPDX-License-Identifier: Apache-2.0
// One check for every operation: its values against the formula in double, its gradients against central differences of
// that formula. Tensor is float, so differences of the operation itself would drown in rounding.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "bary/kernel/checks_test.h"
#include "bary/tensor/ops.h"
#include "bary/tensor/tape.h"

namespace bary {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;
using kernel::expect_close;
using kernel::expect_same_bits;
using kernel::kEps;
using kernel::largest;

inline Floats normals(int64_t n, uint64_t seed, double scale = 1) {
  RandomStream random(seed, Purpose::test);
  Floats x(static_cast<size_t>(n));
  for (float& v : x) v = static_cast<float>(random.normal() * scale);
  return x;
}
inline Tensor random_tensor(Shape shape, uint64_t seed, double scale = 1) {
  return Tensor::from(shape, normals(shape.volume(), seed, scale));
}
inline Doubles doubles(const Floats& x) { return {x.begin(), x.end()}; }
inline Doubles doubles(const Tensor& x) { return doubles(x.to_vector()); }

struct OpCase {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> op;
  std::function<Doubles(const std::vector<Doubles>&)> formula;  // on dense rows
  double terms = 1;  // added up for one number of the result or of a gradient: rounding grows with its root
};

struct OpRun {
  Floats values;
  std::vector<Floats> gradients;  // of sum(y c), per input; empty where none was asked for
};

// `times` copies of the operation on one set of inputs, so that gradients have to be added up
inline OpRun run_op(const OpCase& c, const std::vector<bool>& wanted, int times = 1) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(random_tensor(c.inputs[i], 100 + i));
    if (wanted[i]) inputs.back().require_grad();
  }
  OpRun r;
  Tape tape;
  Tensor loss;
  for (int i = 0; i < times; ++i) {
    Tensor y = c.op(inputs);
    r.values = y.to_vector();
    Tensor part = sum(y * random_tensor(y.shape(), 7));
    loss = loss.defined() ? loss + part : part;
  }
  if (loss.needs_grad()) tape.backward(loss);
  for (const Tensor& x : inputs) r.gradients.push_back(x.has_grad() ? x.grad_vector() : Floats());
  return r;
}

inline Doubles central_differences(const OpCase& c, std::vector<Doubles>& inputs, size_t which) {
  Doubles g, weights = doubles(normals(static_cast<int64_t>(c.formula(inputs).size()), 7));
  auto loss = [&] {
    Doubles y = c.formula(inputs);
    double s = 0;
    for (size_t i = 0; i < y.size(); ++i) s += y[i] * weights[i];
    return s;
  };
  for (double& x : inputs[which]) {
    const double was = x, h = 1e-5;
    x = was + h;
    const double up = loss();
    x = was - h;
    g.push_back((up - loss()) / (2 * h));
    x = was;
  }
  return g;
}

inline void check_op(const OpCase& c) {
  SCOPED_TRACE(c.name);
  std::vector<Doubles> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(doubles(normals(c.inputs[i].volume(), 100 + i)));
  const std::vector<bool> all(c.inputs.size(), true);
  OpRun run = run_op(c, all), twice = run_op(c, all, 2);
  Doubles want = c.formula(inputs);
  expect_close(run.values, want, 8 * kEps * std::sqrt(c.terms) * std::max(1.0, largest(want)), "values");
  for (size_t i = 0; i < inputs.size(); ++i) {
    Doubles g = central_differences(c, inputs, i);
    const double tolerance = 16 * kEps * std::sqrt(c.terms) * std::max(1.0, largest(g));
    const std::string what = "gradient of input " + std::to_string(i);
    expect_close(run.gradients[i], g, tolerance, what);
    for (double& x : g) x *= 2;
    expect_close(twice.gradients[i], g, 2 * tolerance, what + ", used twice");
    std::vector<bool> only(inputs.size(), false);
    only[i] = true;
    OpRun alone = run_op(c, only);
    expect_same_bits(alone.gradients[i], run.gradients[i], what + " alone");
    for (size_t j = 0; j < inputs.size(); ++j) EXPECT_TRUE(i == j || alone.gradients[j].empty());
  }
  OpRun none = run_op(c, std::vector<bool>(inputs.size(), false));
  expect_same_bits(none.values, run.values, "without gradients");
}

}  // namespace bary
