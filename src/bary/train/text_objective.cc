// SPDX-License-Identifier: Apache-2.0
#include "bary/train/text_objective.h"

#include "bary/model/count.h"
#include "bary/train/checkpoint.h"
#include "bary/train/masking.h"
#include "bary/train/probe.h"

namespace bary {

TokenSpan train_sample(const TrainData& data) {
  int64_t n = data.val.empty() ? data.train.size() : std::min(data.train.size(), data.val.size());
  return data.train.slice(0, n);
}

TextObjective::TextObjective(const TrainConfig& config, LanguageModel& model, const TrainData& data)
    : config_(config),
      model_(model),
      data_(data),
      windows_(data.train, model.config().block_size, "the training part") {
  BARY_CHECK(model.config().vocab_size >= data.vocab_size,
             "train: the data has a vocabulary of {}, the model of {}; were they "
             "made with the same tokenizer?",
             data.vocab_size, model.config().vocab_size);
}

TokenSpan TextObjective::tokens(Part part) const { return part == Part::train ? train_sample(data_) : data_.val; }

void TextObjective::window(int64_t it, int64_t s, std::span<int32_t> in, std::span<int32_t> out) const {
  const auto step = static_cast<uint64_t>(it), sequence = static_cast<uint64_t>(s);
  windows_.window(config_.seed, Purpose::batch, step, sequence, in, out);
  if (data_.mask_token) hide_tokens(*data_.mask_token, data_.vocab_size, {config_.seed, step, sequence}, in, out);
}

GradientSum::Result TextObjective::gradient(int64_t it, const Pass& pass, GradientSum& into) const {
  const int64_t T = model_.config().block_size;
  auto source = [&](int64_t s, std::span<int32_t> in, std::span<int32_t> out) { window(it, s, in, out); };
  return into.compute(config_.sequences(), T,
                      window_losses(model_, T, source, static_cast<float>(config_.label_smoothing)), pass);
}

Evaluation TextObjective::evaluate(Part part, int64_t count, uint64_t seed) const {
  if (!has(part)) return {};
  if (data_.mask_token) return evaluate_masked(model_, tokens(part), *data_.mask_token, count, seed);
  if (count == 0) return evaluate_all(model_, tokens(part), data_.bytes_of_token, true);
  return evaluate_some(model_, tokens(part), data_.bytes_of_token, count, seed);
}

double TextObjective::flops_per_update() const {
  return count_flops(model_.config(), model_.config().block_size).training * static_cast<double>(config_.sequences());
}

void TextObjective::check_sound(uint64_t seed) const {
  if (!model_.config().causal()) return;
  const CausalityReport probe = probe_causality(model_, seed);
  BARY_CHECK(probe.causal, ErrorKind::numeric,
             "train: the model is not causal: changing token {} moved output {}; its losses "
             "would be worthless, so the run stops here",
             probe.changed, probe.moved);
}

void TextObjective::look_again(int64_t it) const {
  std::vector<int32_t> in(static_cast<size_t>(model_.config().block_size)), out(in.size());
  for (int64_t s = 0; s < config_.sequences(); ++s) {
    window(it, s, in, out);
    model_.hidden(in, 1);
  }
}

std::string TextObjective::save(const std::filesystem::path& folder, AdamW* optimizer,
                                const nlohmann::json& state) const {
  nlohmann::json mine = state;
  if (!data_.sha256.empty()) mine["text_sha256"] = data_.sha256;  // a run that goes on compares it
  return save_model(folder, model_, {data_.tokenizer, {}}, optimizer, mine);
}

}  // namespace bary
