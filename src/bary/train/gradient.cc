// SPDX-License-Identifier: Apache-2.0
#include "bary/train/gradient.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/kernel/optimizer.h"
#include "bary/model/count.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

// Enough groups to keep many cores busy, few enough to stay cheap; and a group's logits exist at once, layer by layer.
int64_t sequences_per_group(int64_t sequences, int64_t T) {
  constexpr int64_t kMost = 4, kMostRows = 512;
  return std::clamp<int64_t>(std::min(sequences / 16, kMostRows / T), 1, kMost);
}

// Parameters up to which depth first is faster (docs/performance.md), and up to which it is where a group has few rows:
// each writes a gradient of its own, which few rows are not worth once it outgrows the caches.
constexpr int64_t kDepthFirst = int64_t{1} << 24, kDepthFirstShort = int64_t{1} << 21, kShortGroup = 128;

}  // namespace

GradientPlan plan_gradient(const ModelConfig& c, Traversal traversal, int64_t sequences, int64_t T, int64_t batch) {
  const int64_t parameters = count_parameters(c).total;
  GradientPlan p;
  p.per_group = sequences_per_group(sequences, T);
  // A recurrent step of one sequence is a matrix times a vector: together they are a product.
  const bool wide = parameters > (p.per_group * T < kShortGroup ? kDepthFirstShort : kDepthFirst) || c.recurrent();
  p.by_layer = traversal == Traversal::layer_by_layer || (traversal == Traversal::automatic && wide);
  const int64_t groups = (sequences + p.per_group - 1) / p.per_group;
  if (p.by_layer) {
    const int64_t most = batch > 0 ? std::min(batch, sequences) : sequences;
    p.at_once = (most + p.per_group - 1) / p.per_group * p.per_group;
  } else {
    constexpr int64_t kMostFloats = int64_t{1} << 26;
    const int64_t wanted = std::max<int64_t>(threads(), std::min<int64_t>(16, kMostFloats / parameters));
    p.buffers = std::min(groups, wanted);
    p.at_once = std::min<int64_t>(threads(), groups);
  }
  return p;
}

LossOf window_losses(const LanguageModel& model, int64_t T, SequenceSource source, float smoothing) {
  return [&model, T, smoothing, source = std::move(source)](int64_t first, int64_t count, const Pass& pass) {
    std::vector<int32_t> inputs(static_cast<size_t>(count * T)), targets(inputs.size());
    parallel_for(count, 16, [&](int64_t b, int64_t e) {
      for (int64_t s = b; s < e; ++s) {
        const auto at = static_cast<size_t>(s * T), size = static_cast<size_t>(T);
        source(first + s, std::span(inputs).subspan(at, size), std::span(targets).subspan(at, size));
      }
    });
    return model.loss(inputs, targets, count, pass, {1, smoothing});
  };
}

GradientSum::GradientSum(const Model& model, Traversal traversal, int64_t batch)
    : model_(model),
      traversal_(traversal),
      batch_(batch),
      size_(model.parameters().size()),
      shares_tables_(model.config().tie_embeddings || model.config().share_embeddings),
      sum_(model.parameters().size()) {}

GradientSum::Result GradientSum::compute(int64_t sequences, int64_t T, const LossOf& loss_of, const Pass& pass) {
  FlushDenormals flush;  // as in every worker: rows are joined here too
  BARY_CHECK(sequences > 0 && T > 0, "gradient: {} sequences of {} rows in a step; it needs at least one of one",
             sequences, T);
  Step step{sequences, T, loss_of, pass, plan_gradient(model_.config(), traversal_, sequences, T, batch_), {}};
  step.results.resize(static_cast<size_t>(sequences));
  rows_.clear();
  step.plan.by_layer ? layer_by_layer(step) : depth_first(step);
  rows_.add_to(sum_.data());
  Result total;
  for (const Result& r : step.results) total.loss += r.loss, total.tokens += r.tokens;
  return total;
}

// Forward and backward of sequences [first, first + count)
void GradientSum::some(Step& step, int64_t first, int64_t count, Tape& tape) {
  Pass mine = step.pass;
  mine.sequence += static_cast<uint64_t>(first);
  LossSum loss = step.loss_of(first, count, mine);
  tape.backward(loss.loss);
  for (int64_t s = 0; s < count; ++s)
    step.results[static_cast<size_t>(first + s)].loss = loss.sequences[static_cast<size_t>(s)];
  step.results[static_cast<size_t>(first)].tokens = loss.count;  // of all of them; only the sum is asked for
}

void GradientSum::one_group(Step& step, int64_t number, Group& group) {
  const int64_t begin = number * step.plan.per_group, end = std::min(step.sequences, begin + step.plan.per_group);
  constexpr int64_t kFewRows = 64;  // of a product that is worth its weight's way from the cache
  const int64_t together = std::max<int64_t>(1, kFewRows / step.T);
  group.rows.clear();
  for (int64_t s = begin; s < end; s += together) {
    Tape tape(group.values.data(), s == begin ? size_ : 0, {}, apart(group.rows));
    some(step, s, std::min(together, end - s), tape);
  }
}

void GradientSum::depth_first(Step& step) {
  const int64_t per_group = step.plan.per_group, groups = (step.sequences + per_group - 1) / per_group;
  const int64_t wave = step.plan.buffers;  // added in order, wave after wave
  while (static_cast<int64_t>(groups_.size()) < wave) groups_.push_back({Buffer(size_), {}});
  parallel_for(size_, kernel::kOptimizerChunk,
               [&](int64_t b, int64_t e) { std::fill(sum_.data() + b, sum_.data() + e, 0.0f); });
  for (int64_t first = 0; first < groups; first += wave) {
    const int64_t count = std::min(wave, groups - first);
    parallel_tasks(count, [&](int64_t i, int) { one_group(step, first + i, groups_[static_cast<size_t>(i)]); });
    parallel_for(size_, kernel::kOptimizerChunk, [&](int64_t b, int64_t e) {
      std::vector<const float*> parts;
      for (int64_t i = 0; i < count; ++i) parts.push_back(groups_[static_cast<size_t>(i)].values.data() + b);
      kernel::add_in_order(parts, e - b, sum_.data() + b);
    });
    for (int64_t i = 0; i < count; ++i) rows_.add(groups_[static_cast<size_t>(i)].rows);
  }
}

void GradientSum::layer_by_layer(Step& step) {
  for (int64_t first = 0; first < step.sequences; first += step.plan.at_once) {
    const int64_t n = std::min(step.plan.at_once, step.sequences - first);
    Tape tape(sum_.data(), first == 0 ? size_ : 0, {step.plan.per_group, n}, apart(rows_));
    some(step, first, n, tape);
  }
}

}  // namespace bary
