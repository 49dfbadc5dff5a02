// SPDX-License-Identifier: Apache-2.0
// Training as the lab does it: the steps of train/ without files. The same seed gives the weights of `bary train`.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bary/lab/experiment.h"
#include "bary/model/language_model.h"
#include "bary/train/config.h"
#include "bary/train/objective.h"
#include "bary/train/schedule.h"

namespace bary::lab {

struct Recipe {
  ModelConfig model;
  int64_t steps = 3000, batch = 64;
  double learning_rate = 1e-3;  // after the warm-up
  int64_t warmup = 0;
  uint64_t seed = 1;
  AdamWOptions adamw{};
  ScheduleKind course = ScheduleKind::constant;  // of the learning rate; what falls falls to 0 at the last step
};
double recipe_gflop(const Recipe& r, int64_t T = 0);  // for sequences of T tokens; 0: of the model's block_size

// Sequence s of step `step`; inputs and targets are model.block_size long, targets of -1 do not count.
using Batches = std::function<void(int64_t step, int64_t s, std::span<int32_t> inputs, std::span<int32_t> targets)>;
// The random windows of `bary train`. `data` outlives what is returned.
Batches text_windows(const TrainData& data, int64_t T, uint64_t seed);

struct StepSeen {
  int64_t step;  // updates done
  double loss;   // nats a target, of the batch before the update
  double gradient_norm;
};
// Called after every update.
using Watch = std::function<void(const StepSeen&, LanguageModel&)>;
using Seen = std::function<void(const StepSeen&)>;
Seen keep_losses(nlohmann::json& row, int64_t steps);  // row["steps"] and row["losses"], thinned; the row outlives it

// The updates of a recipe, whatever is learned from: `gradient` puts the sum of update `it` into `into`. A loss or
// gradient that is not finite is a numeric Error that names the update: a model that broke off has no figures.
using GradientOf = std::function<GradientSum::Result(int64_t it, const Pass& pass, GradientSum& into)>;
void train_updates(const Recipe& r, Model& model, const GradientOf& gradient_of, const Work& work,
                   const Seen& seen = {});
// Of what `bary train` can learn: `objective` was made with objective_config(r).
void train_objective(const Recipe& r, const Objective& objective, const Work& work, const Seen& seen = {});
TrainConfig objective_config(const Recipe& r);

std::unique_ptr<LanguageModel> train_model(const Recipe& r, const Batches& batches, const Work& work,
                                           const Watch& watch = {});

// A unit named "row/seed", of the recipe's seed.
using TrainingRun = std::function<nlohmann::json(const Recipe&, const Work&)>;
Unit training_unit(const std::string& row, const Recipe& r, const TrainingRun& run);

// Away from the chapter's budget: many small updates (batches of 8, learning rate 3e-3) go further in a minute.
Recipe shortened(Recipe r, const Plan& plan, int64_t quick_steps);

// Perplexities after the chapter's definition: all whole windows of the held-out text, and of as much of the start of
// the training text.
struct Perplexities {
  double val = 0, train = 0;
};
// `few`: of 16 random windows of each instead, for a smoke run.
Perplexities perplexities(const LanguageModel& model, const TrainData& data, bool few = false);

// The held-out text; under smoke, which only sees whether things run, its first 2,000 tokens at most.
TokenSpan held_out(const Work& work);

// Trains on the text, the vocabulary its own. The row: parameters, steps and losses (of batches, thinned), val and
// train (perplexities).
struct TextTraining {
  std::unique_ptr<LanguageModel> model;
  nlohmann::json row;
};
TextTraining train_on_text(Recipe r, const Work& work);

// Keeps a value now and then: about `points` of them over `steps`, the first and the last included.
bool keep_point(int64_t step, int64_t steps, int64_t points);

}  // namespace bary::lab
