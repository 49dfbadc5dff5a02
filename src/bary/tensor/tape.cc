// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tape.h"

namespace bary {

thread_local Tape* Tape::active_ = nullptr;

void Tape::backward(const Tensor& loss, float seed) {
  BARY_CHECK(loss.shape().volume() == 1, "backward: the loss has shape {}, expected one element; sum it first",
             loss.shape().str());
  BARY_CHECK(loss.needs_grad(),
             "backward: the loss depends on nothing that needs a gradient; call require_grad() first");
  auto slot = loss.grad();
  BARY_CHECK(slot.data != nullptr,
             "backward: the loss is a parameter and this tape has no gradients for those; hand them in");
  slot.data[0] = seed;
  while (!pullbacks_.empty()) {
    auto pullback = std::move(pullbacks_.back());
    pullbacks_.pop_back();
    pullback();
  }
}

void refuse_gradient(const char* op, const Tensor& x) {
  BARY_CHECK(!(Tape::active() && x.needs_grad()), "{} has no gradient; use it outside a tape", op);
}

}  // namespace bary
