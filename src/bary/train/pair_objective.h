// SPDX-License-Identifier: Apache-2.0
// Pairs of texts: a target given its source, by a model with a source, or by a decoder that reads both in one line.
#pragma once
#include "bary/train/config.h"
#include "bary/train/objective.h"
#include "bary/train/pair_data.h"

namespace bary {

class PairObjective : public Objective {
 public:
  // All three outlive it.
  PairObjective(const TrainConfig& config, Seq2Seq& model, const PairData& data)
      : config_(config), model_(model), data_(data) {}

  Model& model() const override { return model_; }
  GradientSum::Result gradient(int64_t it, const Pass& pass, GradientSum& into) const override;
  bool has(Part part) const override { return part == Part::train || data_.task().facts().held_out > 0; }
  Evaluation evaluate(Part part, int64_t count, uint64_t seed) const override;
  double flops_per_update() const override;
  void look_again(int64_t it) const override;
  std::string save(const std::filesystem::path& folder, AdamW* optimizer, const nlohmann::json& state) const override;

 private:
  const TrainConfig& config_;
  Seq2Seq& model_;
  const PairData& data_;
};

// The same pairs for one stack: source, separator, target side by side, of which the target alone counts. With
// config.prefix every position sees all of the source; without it the line is causal throughout.
class PairLineObjective : public Objective {
 public:
  PairLineObjective(const TrainConfig& config, LanguageModel& model, const PairData& data)
      : config_(config), model_(model), data_(data) {}

  Model& model() const override { return model_; }
  GradientSum::Result gradient(int64_t it, const Pass& pass, GradientSum& into) const override;
  bool has(Part part) const override { return part == Part::train || data_.task().facts().held_out > 0; }
  Evaluation evaluate(Part part, int64_t count, uint64_t seed) const override;
  double flops_per_update() const override;
  void look_again(int64_t it) const override;
  std::string save(const std::filesystem::path& folder, AdamW* optimizer, const nlohmann::json& state) const override;

 private:
  const TrainConfig& config_;
  LanguageModel& model_;
  const PairData& data_;
};

}  // namespace bary
