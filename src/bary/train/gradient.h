// SPDX-License-Identifier: Apache-2.0
// The gradient of one optimiser step. Its sequences, numbered over the whole step (accumulation included), form fixed
// groups; a parameter's gradient is a sum over each group, and the groups are added in the order of their numbers. So
// neither threads nor batch_size x gradient_accumulation_steps decide about a bit (docs/numerics.md).
// Two ways through the same ops, with the same sums:
//   depth first: a thread takes a group through forward and backward of the whole model, one sequence (or a few short
//     ones) after another, with its own tape and memory. A sequence's activations stay in a cache; a buffer of
//     gradients for each group.
//   layer by layer: all sequences pass each layer together, and the threads share the rows of its products. For models
//     whose gradient is larger than any cache, and for recurrent ones, whose step of one sequence is a matrix times a
//     vector; one buffer of gradients, and the activations of a whole batch.
// A token table that is also the head, or two sides' table, is used more than once: rows looked up in it are summed by
// group apart (tensor/row_sums.h) and added last, so that this holds for it as well.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bary/model/language_model.h"
#include "bary/model/model.h"
#include "bary/tensor/row_sums.h"
#include "bary/tensor/tape.h"

namespace bary {

enum class Traversal { automatic, depth_first, layer_by_layer };

struct GradientPlan {
  bool by_layer = false;
  int64_t per_group = 1;  // sequences; depends on the step and the window alone, never on the machine or the traversal
  int64_t buffers = 0;    // of gradients beside the sum: groups under way at once
  int64_t at_once = 1;    // sequences whose activations are in memory
};
// T: rows of a sequence. `batch`: most sequences together, layer by layer (0: all).
GradientPlan plan_gradient(const ModelConfig& c, Traversal traversal, int64_t sequences, int64_t T, int64_t batch);

// The loss of sequences [first, first + count) of the step, summed, under the tape of the caller; `pass` names them.
// Called from several threads.
using LossOf = std::function<LossSum(int64_t first, int64_t count, const Pass& pass)>;

// Of windows of one text: `source` writes sequence s of the step; targets of -1 do not count.
using SequenceSource = std::function<void(int64_t s, std::span<int32_t> inputs, std::span<int32_t> targets)>;
LossOf window_losses(const LanguageModel& model, int64_t T, SequenceSource source, float smoothing = 0);

class GradientSum {
 public:
  explicit GradientSum(const Model& model, Traversal traversal = Traversal::automatic, int64_t batch = 0);

  struct Result {
    double loss = 0;     // sum over counted targets, in sequence order
    int64_t tokens = 0;  // counted targets
    double mean() const { return tokens ? loss / static_cast<double>(tokens) : 0; }
  };
  // Sum (not mean) over all sequences of about T rows into values(). `pass` names seed and step; sequence s is
  // pass.sequence + s.
  Result compute(int64_t sequences, int64_t T, const LossOf& loss_of, const Pass& pass);
  const float* values() const { return sum_.data(); }
  int64_t size() const { return size_; }

 private:
  struct Step {  // of one call of compute
    int64_t sequences, T;
    const LossOf& loss_of;
    const Pass& pass;
    GradientPlan plan;
    std::vector<Result> results;  // of each sequence
  };
  void depth_first(Step& step);
  struct Group {  // gradients of one, under way
    Buffer values;
    RowSums rows;
  };
  void one_group(Step& step, int64_t number, Group& group);
  RowSums* apart(RowSums& rows) const { return shares_tables_ ? &rows : nullptr; }
  void layer_by_layer(Step& step);
  static void some(Step& step, int64_t first, int64_t count, Tape& tape);

  const Model& model_;
  Traversal traversal_;
  int64_t batch_, size_;
  bool shares_tables_;
  Buffer sum_;
  RowSums rows_;
  std::vector<Group> groups_;
};

}  // namespace bary
