// SPDX-License-Identifier: Apache-2.0
// Beam search over made-up sources, by a model with random weights that never ends a target: every one has all its
// tokens, so that two programs do the same work.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "bary/generate/beam.h"

namespace bary {

class BeamBench {
 public:
  // Sources of 3 to 20 tokens, targets of `tokens`.
  BeamBench(const ModelConfig& config, int64_t sources, int64_t beam, int64_t tokens, uint64_t seed);
  double run_one();  // seconds for all sources
  int64_t parameters() const { return model_->parameters().count(); }

 private:
  std::unique_ptr<Seq2Seq> model_;
  std::vector<std::vector<int32_t>> sources_;
  BeamOptions options_;
};

}  // namespace bary
