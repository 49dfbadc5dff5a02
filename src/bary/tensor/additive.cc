// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/additive.h"

#include "bary/base/parallel.h"
#include "bary/kernel/additive.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"
#include "bary/tensor/weight.h"

namespace bary {
namespace {

kernel::AdditiveInputs sequence_of(const Tensor& q, const Tensor& k, const Tensor& v, int64_t b) {
  const int64_t T = q.dim(1), S = k.dim(1);
  return {T, S, q.dim(2), {q.row(b * T), q.stride()}, {k.row(b * S), k.stride()}, v.data()};
}

// Where a gradient is written that can only be written: in its place if nothing is there yet, else beside it.
struct Place {
  explicit Place(const Tensor& of) : rows(of.rows()), slot(of.grad()) {
    if (!slot || slot.accumulate) own = Tensor(of.shape());
  }
  kernel::Strided<float> row(int64_t r) const {
    return own.defined() ? kernel::Strided<float>{own.row(r), own.stride()}
                         : kernel::Strided<float>{slot.data + r * slot.stride, slot.stride};
  }
  void give() const {
    if (slot && slot.accumulate)
      kernel::add_rows(rows, own.channels(), own.data(), own.stride(), slot.data, slot.stride);
  }
  int64_t rows;
  GradientSlot slot;
  Tensor own;
};

}  // namespace

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v) {
  BARY_CHECK(q.shape().rank() == 3 && k.shape().rank() == 3 && q.dim(0) == k.dim(0) && q.dim(2) == k.dim(2),
             "additive_scores: queries {} and keys {}; expected (B,T,A) and (B,S,A)", q.shape().str(), k.shape().str());
  BARY_CHECK(v.shape() == Shape{q.dim(2)}, "additive_scores: v is {}, expected ({})", v.shape().str(), q.dim(2));
  const int64_t B = q.dim(0), T = q.dim(1), S = k.dim(1);
  Tensor y(Shape{B, T, S});
  parallel_for(B, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) kernel::additive_scores(sequence_of(q, k, v, b), {y.row(b * T), y.stride()});
  });
  record(
      y,
      [=] {
        const Place dq(q), dk(k);
        Tensor sum(q.shape());
        parallel_for(B, 1, [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b)
            kernel::additive_scores_backward(sequence_of(q, k, v, b), {y.cotangent() + b * T * y.stride(), y.stride()},
                                             {dq.row(b * T), dk.row(b * S), {sum.row(b * T), sum.stride()}});
        });
        FlushDenormals flush;
        dq.give();
        dk.give();
        add_row_sums(sum.data(), sum.stride(), B * T, Tape::active()->group_of(B * T), v);
      },
      q, k, v);
  return y;
}

}  // namespace bary
