// SPDX-License-Identifier: Apache-2.0
// The three products of a weight matrix W (N,K): y = x W^T, dx = dy W, dW += dy^T x. A parameter's packed copies come
// from its owner; any other tensor is packed for the call.
#pragma once
#include "bary/tensor/parameters.h"

namespace bary::kernel {
struct Epilogue;
}

namespace bary {

// Floats of a weight that no longer fits the second-level cache beside its operands. Where many rows meet it, it is
// packed on the way.
constexpr int64_t kLargeWeight = int64_t{1} << 18;

class Weight {
 public:
  explicit Weight(const Tensor& w) : w_(w) {}
  void forward(const Tensor& x, const Tensor& y, const kernel::Epilogue& e) const;  // rows over threads
  void forward_rows(const float* x, int64_t ldx, int64_t rows, const Tensor& y, const kernel::Epilogue& e) const;
  // dx (+)= (dy W) [times]; `times` is an activation's derivative
  void backward_input(const float* dy, int64_t ldy, int64_t rows, GradientSlot dx, const Tensor* times = nullptr) const;
  // dW += dy^T x, dbias += sum of rows of dy, each one chain over the rows (of a group of the tape); `group`: rows of
  // one, where these are only some of an op's
  void backward_weight(const float* dy, int64_t ldy, const Tensor& x, const Tensor& bias) const;
  struct Rows {
    const float *dy, *x;
    int64_t ldy, ldx, count, group;
  };
  void backward_weight_rows(const Rows& r, const Tensor& bias) const;

 private:
  struct Packed {
    const float* data;
    Buffer temporary;
  };
  Packed packed(bool transposed) const;
  Tensor w_;
};

// The gradient of a vector added to every row: bias += sum of rows of dy, one chain a group of the tape
void add_row_sums(const float* dy, int64_t ldy, int64_t rows, int64_t group, const Tensor& bias);

}  // namespace bary
