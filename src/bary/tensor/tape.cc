// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tape.h"

#include <algorithm>

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
  clear_between(0, undefined_);
  undefined_ = 0;
}

bool Tape::adds_to(int64_t offset, int64_t size) {
  if (offset >= undefined_) return true;
  const int64_t end = offset + size;
  auto next = defined_.lower_bound(offset);
  if (next != defined_.end() && next->first == offset && next->second == end) return true;
  auto before = next == defined_.begin() ? defined_.end() : std::prev(next);
  const bool touched =
      (next != defined_.end() && next->first < end) || (before != defined_.end() && before->second > offset);
  if (touched) {  // part of it came in with neighbours: the rest starts from zero
    clear_between(offset, end);
  } else {
    defined_[offset] = end;
  }
  return touched;
}

// Zeros what is still undefined of [begin, end).
void Tape::clear_between(int64_t begin, int64_t end) {
  auto it = defined_.upper_bound(begin);
  if (it != defined_.begin() && std::prev(it)->second > begin) begin = std::prev(it)->second;
  std::map<int64_t, int64_t> gaps;
  for (; it != defined_.end() && it->first < end; ++it) {
    if (begin < it->first) gaps[begin] = it->first;
    begin = it->second;
  }
  if (begin < end) gaps[begin] = end;
  for (auto [from, to] : gaps) std::fill(gradients_ + from, gradients_ + to, 0.0f);
  defined_.merge(gaps);
}

void refuse_gradient(const char* op, const Tensor& x) {
  BARY_CHECK(!(Tape::active() && x.needs_grad()), "{} has no gradient; use it outside a tape", op);
}

}  // namespace bary
