// SPDX-License-Identifier: Apache-2.0
// The training loop. It prints nothing: whoever calls it hears of steps, evaluations and samples through hooks. N
// updates are N updates, with an evaluation and a save before the first and after the last (nanoGPT does one more). A
// run from the beginning takes the place of what out_dir held; callers ask before.
#pragma once
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bary/base/file.h"
#include "bary/train/config.h"
#include "bary/train/objective.h"

namespace bary {

struct StepReport {
  int64_t step = 0, max_iters = 0;  // updates done after this one
  double loss = 0, learning_rate = 0, grad_norm = 0;
  double seconds = 0;            // of this step
  double tokens_per_second = 0;  // since this process started stepping, evaluations left out
  double gflops = 0;
  double eta_seconds = 0;
};
struct EvalReport {
  int64_t step = 0;
  Evaluation train, val;  // val.tokens 0: nothing is held out
  bool best = false, final = false;
};

struct TrainHooks {
  std::function<void(const std::string&)> note;
  std::function<void(const StepReport&)> step;
  std::function<void(const EvalReport&)> evaluated;
  std::function<void(int64_t step, Model& model)> sample;
  std::function<void(const std::string& folder)> saved;
  const std::atomic<bool>* stop = nullptr;  // asked between steps; the state is saved, then the loop ends
};

struct TrainResult {
  int64_t steps = 0;  // updates done in all
  bool interrupted = false, stopped_early = false;
  Evaluation train, val;  // of the last weights on the whole texts, after the chapter's definition; eval_only: as asked
  double best_val_loss = 0;
  int64_t best_step = -1;
  double final_loss = 0;  // of the last batch
  double seconds = 0;     // in steps
  int64_t tokens = 0;     // learned from in this process
  std::string weights_sha256, last_folder;
};

class TrainLoop {
 public:
  // The objective's model as it starts, from scratch or from somewhere; `record` is written beside the run.
  TrainLoop(const TrainConfig& config, const Objective& objective, TrainHooks hooks, nlohmann::json record);
  void resume();  // from out_dir: weights, moments, step
  TrainResult run();

 private:
  void one_step();
  void evaluate(bool final_one);
  void save(bool best);
  void refuse_not_finite(double loss);  // throws or, with on_nan=skip, leaves everything as it was
  std::string diagnose() const;         // the first tensor that is not finite
  std::string last_good() const;
  void metric(const nlohmann::json& line);
  void start_metrics() const;
  void start_folder() const;
  bool patient() const { return config_.patience == 0 || evaluations_since_best_ < config_.patience; }

  TrainConfig config_;
  const Objective& objective_;
  Model& model_;
  TrainHooks hooks_;
  nlohmann::json record_;
  GradientSum gradient_;
  AdamW optimizer_;
  TrainResult result_;
  std::optional<FolderLock> lock_;  // two runs in one folder would mix
  double flops_per_step_ = 0;
  int64_t start_step_ = 0, evaluations_since_best_ = 0, saved_at_ = -1;
  bool has_best_ = false, resumed_ = false;
};

}  // namespace bary
