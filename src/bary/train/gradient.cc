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

constexpr int64_t kDepthFirst = int64_t{1} << 24;  // parameters up to which depth first is faster (docs/performance.md)

}  // namespace

GradientPlan plan_gradient(const ModelConfig& c, Traversal traversal, int64_t sequences, int64_t batch) {
  const int64_t parameters = count_parameters(c).total;
  GradientPlan p;
  p.by_layer =
      traversal == Traversal::layer_by_layer || (traversal == Traversal::automatic && parameters > kDepthFirst);
  p.per_group = sequences_per_group(sequences, c.block_size);
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

GradientSum::GradientSum(const Decoder& model, Traversal traversal, int64_t batch)
    : model_(model),
      traversal_(traversal),
      batch_(batch),
      size_(model.parameters().size()),
      sum_(model.parameters().size()) {}

GradientSum::Result GradientSum::compute(int64_t sequences, int64_t T, const SequenceSource& source, const Pass& pass) {
  BARY_CHECK(sequences > 0, "gradient: {} sequences in a step; it needs at least one", sequences);
  Step step{sequences, T, source, pass, plan_gradient(model_.config(), traversal_, sequences, batch_), {}};
  step.plan.per_group = sequences_per_group(sequences, T);
  step.results.resize(static_cast<size_t>(sequences));
  step.plan.by_layer ? layer_by_layer(step) : depth_first(step);
  Result total;
  for (const Result& r : step.results) total.loss += r.loss, total.tokens += r.tokens;
  return total;
}

void GradientSum::one_group(Step& step, int64_t group, float* into) const {
  const int64_t T = step.T, first = group * step.plan.per_group;
  std::vector<int32_t> inputs(static_cast<size_t>(T)), targets(static_cast<size_t>(T));
  for (int64_t s = first; s < std::min(step.sequences, first + step.plan.per_group); ++s) {
    step.source(s, inputs, targets);
    Pass mine = step.pass;
    mine.sequence += static_cast<uint64_t>(s);
    Tape tape(into, s == first ? size_ : 0);
    LossSum loss = model_.loss(inputs, targets, 1, mine);
    tape.backward(loss.loss);
    step.results[static_cast<size_t>(s)] = {loss.sum, loss.count};
  }
}

void GradientSum::depth_first(Step& step) {
  const int64_t per_group = step.plan.per_group, groups = (step.sequences + per_group - 1) / per_group;
  const int64_t wave = step.plan.buffers;  // added in order, wave after wave
  while (static_cast<int64_t>(groups_.size()) < wave) groups_.emplace_back(size_);
  parallel_for(size_, kernel::kOptimizerChunk,
               [&](int64_t b, int64_t e) { std::fill(sum_.data() + b, sum_.data() + e, 0.0f); });
  for (int64_t first = 0; first < groups; first += wave) {
    const int64_t count = std::min(wave, groups - first);
    parallel_tasks(count, [&](int64_t i, int) { one_group(step, first + i, groups_[static_cast<size_t>(i)].data()); });
    parallel_for(size_, kernel::kOptimizerChunk, [&](int64_t b, int64_t e) {
      std::vector<const float*> parts;
      for (int64_t i = 0; i < count; ++i) parts.push_back(groups_[static_cast<size_t>(i)].data() + b);
      kernel::add_in_order(parts, e - b, sum_.data() + b);
    });
  }
}

void GradientSum::layer_by_layer(Step& step) {
  const int64_t T = step.T, most = step.plan.at_once;
  std::vector<int32_t> inputs(static_cast<size_t>(most * T)), targets(inputs.size());
  for (int64_t first = 0; first < step.sequences; first += most) {
    const int64_t n = std::min(most, step.sequences - first);
    const auto length = static_cast<size_t>(n * T);
    parallel_for(n, 16, [&](int64_t b, int64_t e) {
      for (int64_t s = b; s < e; ++s) {
        const auto at = static_cast<size_t>(s * T), size = static_cast<size_t>(T);
        step.source(first + s, std::span(inputs).subspan(at, size), std::span(targets).subspan(at, size));
      }
    });
    Pass mine = step.pass;
    mine.sequence += static_cast<uint64_t>(first);
    Tape tape(sum_.data(), first == 0 ? size_ : 0, step.plan.per_group * T);
    LossSum loss = model_.loss(std::span(inputs).first(length), std::span(targets).first(length), n, mine);
    tape.backward(loss.loss);
    for (int64_t s = 0; s < n; ++s) {
      const auto its = std::span(targets).subspan(static_cast<size_t>(s * T), static_cast<size_t>(T));
      step.results[static_cast<size_t>(first + s)] = {
          loss.sequences[static_cast<size_t>(s)],
          std::count_if(its.begin(), its.end(), [](int32_t t) { return t >= 0; })};
    }
  }
}

}  // namespace bary
