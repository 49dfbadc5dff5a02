// SPDX-License-Identifier: Apache-2.0
// What a run begins with: a model, new or another's, and the texts or pairs it learns from.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "bary/cli/command.h"
#include "bary/cli/train_request.h"
#include "bary/train/data.h"
#include "bary/train/objective.h"
#include "bary/train/pair_data.h"

namespace bary {

struct TrainStart {
  std::unique_ptr<LanguageModel> language;  // one of the two
  std::unique_ptr<Seq2Seq> pair_model;
  std::unique_ptr<TrainData> text;  // one of the two
  std::unique_ptr<PairData> pairs;
  std::unique_ptr<Objective> objective;

  Model& model() const { return objective->model(); }
};

// Completes r.model by what the data and a checkpoint to go on from say: vocabularies, the window of pairs.
TrainStart prepare_training(TrainRequest& r, Io& io);
std::string data_line(const TrainStart& s);                          // "tinyshakespeare (1.12 MB), ... tokens"
std::string model_line(const ModelConfig& c);                        // "1 block, width 128, ..."
std::shared_ptr<const PairTask> pair_task_of(const TrainConfig& c);  // the task with its files and texts

}  // namespace bary
