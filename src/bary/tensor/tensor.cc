// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"

namespace bary {

// Rows a multiple of 512 bytes apart share cache sets: the products over rows (weight gradients) lose half the
// first-level cache to that.
int64_t padded_stride(int64_t channels) {
  int64_t c = (channels + 15) / 16 * 16;
  return c % 128 == 0 ? c + 16 : c;
}

Tensor::Tensor(Shape shape) : node_(std::make_shared<Node>()) {
  node_->shape = shape;
  node_->stride = padded_stride(shape.channels());
  node_->value = Buffer(shape.rows() * node_->stride);
  node_->data = node_->value.data();
}

Tensor Tensor::zeros(Shape shape) {
  Tensor t(shape);
  std::fill_n(t.data(), t.rows() * t.stride(), 0.0f);
  return t;
}

Tensor Tensor::from(Shape shape, std::span<const float> values) {
  BARY_CHECK(static_cast<int64_t>(values.size()) == shape.volume(),
             "Tensor::from: {} values for shape {}, which holds {}", values.size(), shape.str(), shape.volume());
  Tensor t(shape);
  for (int64_t r = 0; r < t.rows(); ++r) std::copy_n(values.data() + r * t.channels(), t.channels(), t.row(r));
  return t;
}

static std::vector<float> without_padding(const float* p, int64_t rows, int64_t channels, int64_t stride) {
  std::vector<float> v(static_cast<size_t>(rows * channels));
  for (int64_t r = 0; r < rows; ++r) std::copy_n(p + r * stride, channels, v.data() + r * channels);
  return v;
}
std::vector<float> Tensor::to_vector() const { return without_padding(data(), rows(), channels(), stride()); }

float Tensor::item() const {
  BARY_CHECK(shape().volume() == 1, "item: the tensor has shape {}, expected one element", shape().str());
  return data()[0];
}

Tensor& Tensor::require_grad() {
  node_->needs_grad = true;
  return *this;
}

bool Tensor::has_grad() const {
  if (!node_) return false;
  return is_parameter() ? Tape::active() && Tape::active()->gradients() : static_cast<bool>(node_->gradient);
}

GradientSlot Tensor::grad() const {
  if (!needs_grad()) return {};
  if (is_parameter()) {  // belongs to the tape, so that threads with tapes of their own need no locks
    float* base = Tape::active() ? Tape::active()->gradients() : nullptr;
    if (!base) return {};
    return {base + node_->offset, node_->stride, Tape::active()->adds_to(node_->offset, shape().volume())};
  }
  bool first = !node_->gradient;
  if (first) node_->gradient = Buffer(rows() * stride());
  return {node_->gradient.data(), stride(), !first};
}

const float* Tensor::cotangent() const {
  return is_parameter() ? Tape::active()->gradients() + node_->offset : node_->gradient.data();
}

std::vector<float> Tensor::grad_vector() const {
  BARY_CHECK(has_grad(), "grad_vector: this tensor of shape {} has no gradient; run backward on a loss that uses it",
             shape().str());
  return without_padding(cotangent(), rows(), channels(), stride());
}

void Tensor::pass_gradient_to(const Tensor& to) const {
  if (!to.needs_grad()) return;
  if (!to.is_parameter() && !to.node_->gradient && to.stride() == stride()) {
    to.node_->gradient = std::move(node_->gradient);
    return;
  }
  auto slot = to.grad();
  if (!slot) return;
  if (slot.accumulate) {
    kernel::add_rows(rows(), channels(), cotangent(), stride(), slot.data, slot.stride);
  } else {
    for (int64_t r = 0; r < rows(); ++r)
      std::copy_n(cotangent() + r * stride(), channels(), slot.data + r * slot.stride);
  }
}

}  // namespace bary
