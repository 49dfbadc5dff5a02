// SPDX-License-Identifier: Apache-2.0
// Tensors of N(0,1), named by a number, and how far two tensors are apart.
#pragma once
#include <cmath>

#include "bary/base/random.h"
#include "bary/lab/sample.h"
#include "bary/tensor/tensor.h"

namespace bary::lab {

inline Tensor random_tensor(Shape shape, uint64_t which) {
  Tensor x(shape);
  RandomStream random(1, Purpose::synthetic, which);
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t c = 0; c < x.channels(); ++c) x.row(r)[c] = static_cast<float>(random.normal());
  return x;
}

// max |a - b| over all elements; of tensors with as many. NaN if any is.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int64_t c = 0; c < a.channels(); ++c)
      most = greater_of(most, std::fabs(static_cast<double>(a.row(r)[c]) - static_cast<double>(b.row(r)[c])));
  return most;
}
inline double largest(const Tensor& x) { return largest_difference(x, Tensor::zeros(x.shape())); }

}  // namespace bary::lab
