// SPDX-License-Identifier: Apache-2.0
// The gradient of one optimiser step, depth first: a thread takes a fixed group of one to four sequences through
// forward and backward of the whole model, one sequence after another, with its own tape and memory; the groups'
// gradients are added in the order of their numbers. Sequences are numbered over the whole step, accumulation included,
// so neither threads nor batch_size x gradient_accumulation_steps decide about a bit (docs/numerics.md).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bary/model/decoder.h"

namespace bary {

// Depends on the step alone, never on the machine: enough groups to keep many cores busy, few enough to stay cheap.
int64_t sequences_per_group(int64_t sequences);
// Groups whose gradients are in memory at once; changes memory and nothing else.
int64_t gradient_buffers(int64_t sequences, int64_t parameters, int64_t threads);

// Writes sequence s of the step. Returns the number of positions, at most block_size; targets of -1 do not count.
using SequenceSource = std::function<void(int64_t s, std::span<int32_t> inputs, std::span<int32_t> targets)>;

class GradientSum {
 public:
  explicit GradientSum(const Decoder& model);

  struct Result {
    double loss = 0;     // sum over counted targets, in sequence order
    int64_t tokens = 0;  // counted targets
    double mean() const { return tokens ? loss / static_cast<double>(tokens) : 0; }
  };
  // Sum (not mean) over all sequences into values(). `pass` names seed and step; sequence s is pass.sequence + s.
  Result compute(int64_t sequences, int64_t T, const SequenceSource& source, const Pass& pass);
  const float* values() const { return sum_.data(); }
  int64_t size() const { return size_; }

 private:
  void one_group(int64_t group, int64_t sequences, int64_t T, const SequenceSource& source, const Pass& pass,
                 float* into, std::span<Result> results) const;

  const Decoder& model_;
  int64_t size_;
  Buffer sum_;
  std::vector<Buffer> groups_;
};

}  // namespace bary
