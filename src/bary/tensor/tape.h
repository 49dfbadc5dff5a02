// SPDX-License-Identifier: Apache-2.0
// The tape: while one lives on a thread, ops append their pullbacks to it; the order they ran in is already
// topological, so backward walks it from the end and frees each step's memory as it goes. Without a tape nothing is
// recorded: that is inference. Reverse-mode differentiation as in any textbook (Griewank and Walther 2008).
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "bary/base/parallel.h"
#include "bary/tensor/row_sums.h"
#include "bary/tensor/tensor.h"

namespace bary {

// A parameter's gradient from every `size` of the `sequences` that a tape records together is a sum of its own, and
// these are added in their order: the bits of one tape for each group and their buffers added. Size 0: one sum.
struct TapeGroups {
  int64_t size = 0, sequences = 0;
};

class Tape {
 public:
  // gradients: the flat buffer (Parameters::size() floats) to which parameters' gradients are added; null if only
  // inputs' gradients are wanted. Owned by the caller, cleared by the caller: several tapes in turn add to one buffer.
  // undefined: so many floats of it hold nothing yet. What comes first for a parameter is then written there, not
  // added, and backward clears what got nothing: one pass over a large buffer less.
  // look_ups: where rows looked up in parameters add their gradients instead; null: to `gradients` as well.
  explicit Tape(float* gradients = nullptr, int64_t undefined = 0, TapeGroups groups = {}, RowSums* look_ups = nullptr)
      : gradients_(gradients), undefined_(undefined), groups_(groups), look_ups_(look_ups), outer_(active_) {
    active_ = this;
  }
  ~Tape() { active_ = outer_; }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  static Tape* active() { return active_; }
  float* gradients() const { return gradients_; }
  RowSums* look_ups() const { return look_ups_; }
  int look_up_use(int64_t offset) { return uses_[offset]++; }  // the how-manieth of this table's, in backward's order
  bool grouped() const { return groups_.size > 0; }
  // Rows of one sum, of an op that has `rows` of them: the same number for every sequence, whatever its side
  int64_t group_of(int64_t rows) const { return grouped() ? rows / groups_.sequences * groups_.size : rows; }
  // A contribution to these floats of `gradients` follows: must it add to what is there?
  bool adds_to(int64_t offset, int64_t size);
  size_t size() const { return pullbacks_.size(); }
  void append(std::function<void()> pullback) { pullbacks_.push_back(std::move(pullback)); }

  // d loss / d everything, for a loss of one element, times `seed`. The tape is empty afterwards.
  void backward(const Tensor& loss, float seed = 1);

 private:
  FlushDenormals flush_;  // what is recorded has the same bits in a worker and in the caller's thread
  static thread_local Tape* active_;
  void clear_between(int64_t begin, int64_t end);

  float* gradients_;
  int64_t undefined_;
  TapeGroups groups_;
  RowSums* look_ups_;
  std::map<int64_t, int> uses_;         // by a table's offset
  std::map<int64_t, int64_t> defined_;  // begin and end of what has been written of the undefined
  Tape* outer_;
  std::vector<std::function<void()>> pullbacks_;
};

// Called by every op: y = f(inputs...). Marks y and records the pullback if any input needs a gradient. A pullback
// whose output got no gradient is skipped.
template <class Pullback, class... Inputs>
void record(Tensor& y, Pullback pullback, const Inputs&... inputs) {
  Tape* tape = Tape::active();
  if (!tape || !(... || inputs.needs_grad())) return;
  y.require_grad();
  tape->append([y, pullback = std::move(pullback)] {
    if (y.has_grad()) pullback();
  });
}

// An op without a gradient calls this: losing one silently would train a wrong model.
void refuse_gradient(const char* op, const Tensor& x);

}  // namespace bary
