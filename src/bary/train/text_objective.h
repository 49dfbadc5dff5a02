// SPDX-License-Identifier: Apache-2.0
// Language models: windows of a text, each position telling the next token; or, for an encoder, the tokens that were
// taken away (Devlin et al. 2019: of every hundred 15 are asked for, 12 of them hidden, 1.5 changed, 1.5 as they were).
#pragma once
#include "bary/train/config.h"
#include "bary/train/data.h"
#include "bary/train/objective.h"

namespace bary {

class TextObjective : public Objective {
 public:
  // All three outlive it.
  TextObjective(const TrainConfig& config, LanguageModel& model, const TrainData& data);

  Model& model() const override { return model_; }
  GradientSum::Result gradient(int64_t it, const Pass& pass, GradientSum& into) const override;
  bool has(Part part) const override { return !tokens(part).empty(); }
  Evaluation evaluate(Part part, int64_t count, uint64_t seed) const override;
  double flops_per_update() const override;
  void check_sound(uint64_t seed) const override;
  void look_again(int64_t it) const override;
  std::string save(const std::filesystem::path& folder, AdamW* optimizer, const nlohmann::json& state) const override;

 private:
  TokenSpan tokens(Part part) const;
  void window(int64_t it, int64_t s, std::span<int32_t> in, std::span<int32_t> out) const;

  const TrainConfig& config_;
  LanguageModel& model_;
  const TrainData& data_;
  Windows windows_;
};

// tokens of the text that "train perplexity" is measured on: as many as are held out, from the start
TokenSpan train_sample(const TrainData& data);

}  // namespace bary
