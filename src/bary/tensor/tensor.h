// SPDX-License-Identifier: Apache-2.0
// A tensor of float32: a shape, its values in rows of channels, and a place for its gradient. Copying a Tensor copies
// the handle, as in PyTorch; the memory is shared. Rows stand `stride` floats apart, a little more than the channels
// where a power of two would make them fall on the same cache sets.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bary/tensor/buffer.h"
#include "bary/tensor/shape.h"

namespace bary {

class Parameters;

// Where a pullback writes: add to what is there, or be the first.
struct GradientSlot {
  float* data = nullptr;  // null: nobody wants it
  int64_t stride = 0;
  bool accumulate = false;
  explicit operator bool() const { return data != nullptr; }
  // For a pullback that can only add: clears `rows` rows if it is the first.
  GradientSlot cleared(int64_t rows) const {
    if (data && !accumulate) std::fill_n(data, rows * stride, 0.0f);
    return {data, stride, true};
  }
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape);  // values undefined
  static Tensor zeros(Shape shape);
  static Tensor from(Shape shape, std::span<const float> values);  // a constant: no gradient

  bool defined() const { return node_ != nullptr; }
  const Shape& shape() const { return node_->shape; }
  int64_t dim(int i) const { return node_->shape[i]; }
  int64_t rows() const { return node_->shape.rows(); }
  int64_t channels() const { return node_->shape.channels(); }
  int64_t stride() const { return node_->stride; }
  float* data() const { return node_->data; }
  float* row(int64_t r) const { return node_->data + r * node_->stride; }
  std::vector<float> to_vector() const;  // without the padding
  float item() const;                    // of a tensor with one element

  // Gradients. A tensor needs one if it is a parameter, was marked, or came from an op that saw one that does.
  bool needs_grad() const { return node_ && node_->needs_grad; }
  Tensor& require_grad();
  bool has_grad() const;           // somebody has contributed
  GradientSlot grad() const;       // for the next contribution; nothing if not needed
  const float* cotangent() const;  // this tensor's gradient, rows `stride` apart; only if has_grad()
  std::vector<float> grad_vector() const;
  // Hands this tensor's finished gradient to `to` (same shape): moved if `to` has none, else added.
  void pass_gradient_to(const Tensor& to) const;

  bool is_parameter() const { return node_ && node_->owner != nullptr; }
  Parameters* owner() const { return node_->owner; }
  int64_t parameter_offset() const { return node_->offset; }
  const void* id() const { return node_.get(); }

 private:
  friend class Parameters;
  struct Node {
    Shape shape;
    int64_t stride = 0;
    float* data = nullptr;
    Buffer value, gradient;
    bool needs_grad = false;
    Parameters* owner = nullptr;  // a parameter's values and gradients live elsewhere
    int64_t offset = 0;
  };
  std::shared_ptr<Node> node_;
};

int64_t padded_stride(int64_t channels);

}  // namespace bary
