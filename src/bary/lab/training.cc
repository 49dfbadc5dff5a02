// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/training.h"

#include <algorithm>
#include <cmath>

#include "bary/model/count.h"
#include "bary/text/batch.h"
#include "bary/train/evaluate.h"
#include "bary/train/gradient.h"
#include "bary/train/schedule.h"
#include "bary/train/text_objective.h"

namespace bary::lab {

double recipe_gflop(const Recipe& r, int64_t T) {
  return count_flops(r.model, T ? T : r.model.block_size).training * static_cast<double>(r.steps * r.batch) / 1e9;
}

Batches text_windows(const TrainData& data, int64_t T, uint64_t seed) {
  Windows windows(data.train, T, "the training part");
  return [windows, seed](int64_t step, int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
    windows.window(seed, Purpose::batch, static_cast<uint64_t>(step), static_cast<uint64_t>(s), in, out);
  };
}

Seen keep_losses(nlohmann::json& row, int64_t steps) {
  row["steps"] = row["losses"] = nlohmann::json::array();
  return [&row, steps](const StepSeen& s) {
    if (keep_point(s.step, steps, 50))
      row["steps"].push_back(static_cast<double>(s.step)), row["losses"].push_back(s.loss);
  };
}

void train_updates(const Recipe& r, Model& model, const GradientOf& gradient_of, const Work& work, const Seen& seen) {
  GradientSum gradient(model, Traversal::automatic, r.batch);
  AdamW optimizer(model.parameters(), r.adamw);
  const Schedule schedule{r.course, r.learning_rate, 0, r.warmup, r.steps, 0.2};
  for (int64_t it = 0; it < r.steps; ++it) {
    Pass pass;
    pass.training = true;
    pass.seed = r.seed;
    pass.step = static_cast<uint64_t>(it);
    const auto sum = gradient_of(it, pass, gradient);
    AdamW::Report report{0, false};
    if (std::isfinite(sum.loss)) report = optimizer.step(gradient.values(), sum.tokens, learning_rate(schedule, it));
    if (!report.finite)
      fail(ErrorKind::numeric, "broke off at update {} of {}: the {} is not finite", it + 1, r.steps,
           std::isfinite(sum.loss) ? "gradient" : "loss");
    if (seen) seen({it + 1, sum.mean(), report.norm});
    work.progress(static_cast<double>(it + 1) / static_cast<double>(r.steps));
  }
}

TrainConfig objective_config(const Recipe& r) {
  TrainConfig c;
  c.batch_size = r.batch, c.seed = r.seed;
  return c;
}

void train_objective(const Recipe& r, const Objective& objective, const Work& work, const Seen& seen) {
  auto gradient_of = [&](int64_t it, const Pass& pass, GradientSum& into) {
    return objective.gradient(it, pass, into);
  };
  train_updates(r, objective.model(), gradient_of, work, seen);
}

std::unique_ptr<LanguageModel> train_model(const Recipe& r, const Batches& batches, const Work& work,
                                           const Watch& watch) {
  auto model = std::make_unique<LanguageModel>(r.model, r.seed);
  auto gradient_of = [&](int64_t it, const Pass& pass, GradientSum& into) {
    auto window = [&](int64_t s, std::span<int32_t> in, std::span<int32_t> out) { batches(it, s, in, out); };
    return into.compute(r.batch, r.model.block_size, window_losses(*model, r.model.block_size, window), pass);
  };
  train_updates(r, *model, gradient_of, work, [&](const StepSeen& s) {
    if (watch) watch(s, *model);
  });
  return model;
}

Perplexities perplexities(const LanguageModel& model, const TrainData& data, bool few) {
  if (few) {
    return {evaluate_some(model, data.val, {}, 16, 1).perplexity(),
            evaluate_some(model, train_sample(data), {}, 16, 1).perplexity()};
  }
  return {evaluate_all(model, data.val, {}, true).perplexity(),
          evaluate_all(model, train_sample(data), {}, true).perplexity()};
}

TokenSpan held_out(const Work& work) {
  const TokenSpan all = work.text(1).val;
  return work.plan.budget == Budget::smoke ? all.slice(0, std::min<int64_t>(all.size(), 2000)) : all;
}

Unit training_unit(const std::string& row, const Recipe& r, const TrainingRun& run) {
  return {row + "/" + std::to_string(r.seed), recipe_gflop(r), [r, run](const Work& work) { return run(r, work); }};
}

Recipe shortened(Recipe r, const Plan& plan, int64_t quick_steps) {
  if (plan.budget == Budget::chapter) return r;
  r.steps = plan.pick<int64_t>(2, quick_steps, r.steps), r.batch = plan.pick<int64_t>(2, 8, r.batch);
  r.learning_rate = 3e-3;
  return r;
}

TextTraining train_on_text(Recipe r, const Work& work) {
  const TrainData& data = work.text(r.model.block_size);
  r.model.vocab_size = data.vocab_size;
  nlohmann::json row;
  const Seen seen = keep_losses(row, r.steps);
  auto model = train_model(r, text_windows(data, r.model.block_size, r.seed), work,
                           [&](const StepSeen& s, LanguageModel&) { seen(s); });
  const Perplexities p = perplexities(*model, data, work.plan.budget == Budget::smoke);
  row["parameters"] = model->parameters().count(), row["val"] = p.val, row["train"] = p.train;
  return {std::move(model), std::move(row)};
}

bool keep_point(int64_t step, int64_t steps, int64_t points) {
  const int64_t every = std::max<int64_t>(1, steps / std::max<int64_t>(points, 1));
  return step == 1 || step == steps || step % every == 0;
}

}  // namespace bary::lab
