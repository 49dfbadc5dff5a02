// SPDX-License-Identifier: Apache-2.0
#include "bary/train/gradient.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/kernel/optimizer.h"
#include "bary/tensor/tape.h"

namespace bary {

int64_t sequences_per_group(int64_t sequences) { return std::clamp<int64_t>(sequences / 16, 1, 4); }

int64_t gradient_buffers(int64_t sequences, int64_t parameters, int64_t threads) {
  constexpr int64_t kMostFloats = int64_t{1} << 26;
  const int64_t per_group = sequences_per_group(sequences), groups = (sequences + per_group - 1) / per_group;
  return std::min(groups, std::max(threads, std::min<int64_t>(16, kMostFloats / std::max<int64_t>(parameters, 1))));
}

GradientSum::GradientSum(const Decoder& model)
    : model_(model), size_(model.parameters().size()), sum_(model.parameters().size()) {}

void GradientSum::one_group(int64_t group, int64_t sequences, int64_t T, const SequenceSource& source, const Pass& pass,
                            float* into, std::span<Result> results) const {
  const int64_t per_group = sequences_per_group(sequences);
  std::vector<int32_t> inputs(static_cast<size_t>(T)), targets(static_cast<size_t>(T));
  for (int64_t s = group * per_group; s < std::min(sequences, (group + 1) * per_group); ++s) {
    source(s, inputs, targets);
    Pass mine = pass;
    mine.sequence += static_cast<uint64_t>(s);
    Tape tape(into, s == group * per_group ? size_ : 0);
    LossSum loss = model_.loss(inputs, targets, 1, mine);
    tape.backward(loss.loss);
    results[static_cast<size_t>(s)] = {loss.sum, loss.count};
  }
}

GradientSum::Result GradientSum::compute(int64_t sequences, int64_t T, const SequenceSource& source, const Pass& pass) {
  BARY_CHECK(sequences > 0, "gradient: {} sequences in a step; it needs at least one", sequences);
  const int64_t per_group = sequences_per_group(sequences), groups = (sequences + per_group - 1) / per_group;
  const int64_t wave = gradient_buffers(sequences, size_, threads());  // added in order, wave after wave
  while (static_cast<int64_t>(groups_.size()) < wave) groups_.emplace_back(size_);
  std::vector<Result> results(static_cast<size_t>(sequences));
  parallel_for(size_, kernel::kOptimizerChunk,
               [&](int64_t b, int64_t e) { std::fill(sum_.data() + b, sum_.data() + e, 0.0f); });
  for (int64_t first = 0; first < groups; first += wave) {
    const int64_t count = std::min(wave, groups - first);
    parallel_tasks(count, [&](int64_t i, int) {
      one_group(first + i, sequences, T, source, pass, groups_[static_cast<size_t>(i)].data(), results);
    });
    parallel_for(size_, kernel::kOptimizerChunk, [&](int64_t b, int64_t e) {
      std::vector<const float*> parts;
      for (int64_t i = 0; i < count; ++i) parts.push_back(groups_[static_cast<size_t>(i)].data() + b);
      kernel::add_in_order(parts, e - b, sum_.data() + b);
    });
  }
  Result total;
  for (const Result& r : results) total.loss += r.loss, total.tokens += r.tokens;
  return total;
}

}  // namespace bary
