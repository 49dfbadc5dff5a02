// SPDX-License-Identifier: Apache-2.0
// The training step under a clock: forward, backward and AdamW of one model on made-up tokens, beside what the machine
// can do at that moment. Machines drift, so a step is told as a share of the register tile timed just before and after
// it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "bary/model/language_model.h"
#include "bary/model/seq2seq.h"
#include "bary/train/adamw.h"
#include "bary/train/gradient.h"

namespace bary {

class StepBench {
 public:
  StepBench(const ModelConfig& config, int64_t batch_size, uint64_t seed, Traversal traversal = Traversal::automatic);
  double run_one();  // seconds of one step
  double flops() const { return flops_; }
  double last_loss() const { return loss_; }
  int64_t parameters() const { return model().parameters().count(); }

 private:
  const Model& model() const { return pairs_ ? static_cast<const Model&>(*pairs_) : *language_; }
  LossOf losses() const;

  ModelConfig config_;
  std::unique_ptr<LanguageModel> language_;  // one of the two
  std::unique_ptr<Seq2Seq> pairs_;           // source and target of block_size tokens each
  GradientSum gradient_;
  AdamW optimizer_;
  std::vector<int32_t> tokens_;
  std::vector<CodedPair> coded_;
  int64_t batch_;
  uint64_t step_ = 0;
  double flops_, loss_ = 0;
};

struct StepFigures {
  std::vector<double> milliseconds, share_of_tile, share_of_fma;
  double tile_gflops = 0, fma_gflops = 0;  // medians
};
StepFigures measure_steps(StepBench& bench, int64_t steps, int64_t warm_up);
double median(std::vector<double> values);
double quantile(std::vector<double> values, double q);  // 0 .. 1, nearest rank

}  // namespace bary
