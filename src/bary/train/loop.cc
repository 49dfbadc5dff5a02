// SPDX-License-Identifier: Apache-2.0
#include "bary/train/loop.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "bary/base/clock.h"
#include "bary/base/json.h"
#include "bary/io/run_folder.h"
#include "bary/tensor/tap.h"
#include "bary/train/checkpoint.h"

namespace bary {

TrainLoop::TrainLoop(const TrainConfig& config, const Objective& objective, TrainHooks hooks, nlohmann::json record)
    : config_(config),
      objective_(objective),
      model_(objective.model()),
      hooks_(std::move(hooks)),
      record_(std::move(record)),
      gradient_(model_, config.traversal, config.batch_size),
      optimizer_(model_.parameters(), config.adamw),
      flops_per_step_(objective.flops_per_update()) {
  config_.check();
  const bool judges = objective.has(Part::held_out);
  BARY_CHECK(
      judges || config_.always_save_checkpoint || config_.eval_only,
      "train: nothing is held out, so no weights are the best, and always_save_checkpoint false keeps no others; "
      "leave it out");
  BARY_CHECK(judges || config_.patience == 0,
             "train: patience {} waits for a better held-out loss, and nothing is held out; leave it out",
             config_.patience);
  if (config_.eval_only) return;  // which writes nothing
  check_writable(config_.out_dir, static_cast<int64_t>(model_.parameters().count()) * 4 * 4 + (1 << 20));
  ensure_folder(config_.out_dir);
  lock_.emplace(config_.out_dir);
}

void TrainLoop::resume() {
  nlohmann::json state = resume_into(config_.out_dir, model_, optimizer_);
  resumed_ = true;
  start_step_ = optimizer_.updates();
  if (state.contains("step") && state["step"].is_number_integer()) start_step_ = state["step"].get<int64_t>();
  auto whole = [&](const char* key, int64_t otherwise) {
    return state.contains(key) && state[key].is_number_integer() ? state[key].get<int64_t>() : otherwise;
  };
  if (state.contains("loss") && state["loss"].is_number()) result_.final_loss = state["loss"].get<double>();
  const bool measured_alike =
      whole("eval_iters", config_.eval_iters) == config_.eval_iters &&
      whole("eval_seed", static_cast<int64_t>(config_.eval_seed)) == static_cast<int64_t>(config_.eval_seed);
  if (!measured_alike && hooks_.note)
    hooks_.note("eval_iters or eval_seed is another than before, so the best is decided anew");
  if (measured_alike && state.contains("best_val_loss") && state["best_val_loss"].is_number()) {
    has_best_ = true;
    result_.best_val_loss = state["best_val_loss"].get<double>();
    result_.best_step = whole("best_step", -1);
    evaluations_since_best_ = whole("evaluations_since_best", 0);
  }
  result_.steps = start_step_;
}

void TrainLoop::metric(const nlohmann::json& line) {
  if (config_.eval_only) return;
  std::ofstream out(std::filesystem::path(config_.out_dir) / "metrics.jsonl", std::ios::app);
  out << dump_json(line, -1) << '\n';
  out.flush();
  BARY_CHECK(out.good(), ErrorKind::system, "{}/metrics.jsonl could not be written; is the disk full?",
             config_.out_dir);
}

// A run that was killed may have written lines after the checkpoint it resumes from, the last of them torn. They would
// stand there twice.
void TrainLoop::start_metrics() const {
  const std::filesystem::path path = std::filesystem::path(config_.out_dir) / "metrics.jsonl";
  std::string kept;
  std::error_code unreadable;  // is as good as not there
  if (resumed_ && std::filesystem::exists(path, unreadable)) {
    std::istringstream lines(read_file(path));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
      const int64_t step = json["step"].get<int64_t>();
      const bool end = step == start_step_ && json.contains("final");  // of a run that goes on now, or ends here again
      if (step <= start_step_ && !end) kept += line + "\n";
    }
  }
  write_file_atomic(path, kept);
}

// What an earlier run left goes when this one begins, or it would be taken for this one's.
void TrainLoop::start_folder() const {
  const std::filesystem::path folder = config_.out_dir;
  write_file_atomic(folder / "run.json", dump_json(record_) + "\n");
  start_metrics();
  for (const char* old : {"best", "best.tmp-old", "last", "last.tmp-old"}) {
    std::error_code error;
    if (!resumed_ && checkpoint_exists(folder / old)) std::filesystem::remove_all(folder / old, error);
    BARY_CHECK(!error, ErrorKind::system,
               "{}: an earlier run's checkpoint could not be removed ({}); give another out_dir",
               (folder / old).string(), error.message());
  }
}

TrainResult TrainLoop::run() {
  if (!config_.eval_only) start_folder();
  if (!resumed_ || config_.eval_only) evaluate(false);
  auto due = [&](int64_t every) { return every > 0 && result_.steps % every == 0; };
  while (!config_.eval_only && result_.steps < config_.max_iters && patient()) {
    if (hooks_.stop && hooks_.stop->load()) {
      result_.interrupted = true;
      break;
    }
    one_step();
    const bool last = result_.steps == config_.max_iters;
    if (due(config_.eval_interval) && !last) evaluate(false);
    if (hooks_.sample && (due(config_.sample_interval) || (last && config_.sample_interval > 0)))
      hooks_.sample(result_.steps, model_);
    if (due(config_.save_interval) && !last) save(false);
  }
  result_.stopped_early = !config_.eval_only && !result_.interrupted && !patient();
  if (!config_.eval_only && !result_.interrupted) {
    save(false);  // before whole texts are read, which can take longer than a person waits
    evaluate(true);
  }
  if (!config_.eval_only && saved_at_ != result_.steps) save(false);
  result_.weights_sha256 = weights_hash(model_);
  return result_;
}

void TrainLoop::one_step() {
  Stopwatch watch;
  const int64_t it = result_.steps;
  Pass pass;
  pass.training = true;
  pass.seed = config_.seed;
  pass.step = static_cast<uint64_t>(it);
  pass.truncate = config_.truncate;
  const GradientSum::Result r = objective_.gradient(it, pass, gradient_);
  const double lr = learning_rate(config_.full_schedule(), it);
  AdamW::Report report{0, false};
  if (std::isfinite(r.loss)) report = optimizer_.step(gradient_.values(), r.tokens, lr);
  if (!report.finite) refuse_not_finite(r.mean());
  ++result_.steps;
  result_.final_loss = r.mean();
  result_.seconds += watch.seconds();
  result_.tokens += r.tokens;
  const int64_t done = result_.steps - start_step_;
  StepReport s{result_.steps, config_.max_iters, r.mean(), lr, report.norm, watch.seconds(), 0, 0, 0};
  s.tokens_per_second = static_cast<double>(result_.tokens) / result_.seconds;
  s.gflops = flops_per_step_ * static_cast<double>(done) / result_.seconds / 1e9;
  s.eta_seconds = result_.seconds / static_cast<double>(done) * static_cast<double>(config_.max_iters - result_.steps);
  if (hooks_.step) hooks_.step(s);
  if (result_.steps % config_.log_interval == 0 || result_.steps == config_.max_iters || result_.steps == 1) {
    metric({{"step", s.step},
            {"loss", s.loss},
            {"lr", lr},
            {"grad_norm", s.grad_norm},
            {"ms", s.seconds * 1e3},
            {"tokens_per_second", s.tokens_per_second},
            {"gflops", s.gflops}});
  }
}

void TrainLoop::evaluate(bool final_one) {
  objective_.check_sound(config_.eval_seed);
  auto look = [&](Part part, bool whole) {
    return objective_.has(part) ? objective_.evaluate(part, whole ? 0 : config_.eval_iters, config_.eval_seed)
                                : Evaluation{};
  };
  EvalReport e;
  e.step = result_.steps;
  e.final = final_one;
  e.train = look(Part::train, final_one);
  e.val = look(Part::held_out, final_one);
  // Best is decided on one measure for the whole run: the fixed windows, or all of them.
  const Evaluation judged = final_one && config_.eval_iters != 0 ? look(Part::held_out, false) : e.val;
  const double loss = judged.loss();
  e.best = judged.tokens > 0 && std::isfinite(loss) && (!has_best_ || loss < result_.best_val_loss);
  if (e.best) {
    has_best_ = true;
    result_.best_val_loss = loss;
    result_.best_step = result_.steps;
    evaluations_since_best_ = 0;
  } else if (judged.tokens > 0 && !final_one) {  // the look at the end is no turn of the run
    ++evaluations_since_best_;
  }
  if (final_one || config_.eval_only) result_.train = e.train, result_.val = e.val;
  nlohmann::json line = to_json(e.val, "val");
  line.update({{"step", e.step},
               {"train_loss", to_json(e.train, "train")["train_loss"]},
               {"whole_text", final_one || config_.eval_iters == 0}});
  if (final_one) line["final"] = true;
  metric(line);
  if (hooks_.evaluated) hooks_.evaluated(e);
  if (final_one) saved_at_ = -1;  // what was saved before this look does not know of it
  if (!config_.eval_only && (e.best || config_.always_save_checkpoint)) save(e.best);
}

void TrainLoop::save(bool best) {
  const std::string damaged = first_not_finite(model_.parameters(), model_.parameters().values());
  BARY_CHECK(damaged.empty(), ErrorKind::numeric,
             "train: after step {} parameter {} is not finite and is not saved: {}; try a "
             "lower --learning_rate, --grad_clip 1 or warm-up",
             result_.steps, damaged, last_good());
  nlohmann::json state = {{"step", result_.steps},
                          {"seed", config_.seed},
                          {"loss", result_.final_loss},
                          {"eval_iters", config_.eval_iters},
                          {"eval_seed", config_.eval_seed}};
  if (has_best_) {
    state["best_val_loss"] = result_.best_val_loss, state["best_step"] = result_.best_step;
    state["evaluations_since_best"] = evaluations_since_best_;
  }
  const std::filesystem::path folder = config_.out_dir;
  // The best first: after a failure between the two the older `last` comes this way again and finds it best again.
  if (best) {
    objective_.save(folder / "best", config_.always_save_checkpoint ? nullptr : &optimizer_, state);
    if (hooks_.saved) hooks_.saved((folder / "best").string());
  }
  if ((config_.always_save_checkpoint || result_.interrupted) && saved_at_ != result_.steps) {  // Ctrl-C loses nothing
    result_.last_folder = (folder / "last").string();
    objective_.save(result_.last_folder, &optimizer_, state);
    saved_at_ = result_.steps;
    if (hooks_.saved) hooks_.saved(result_.last_folder);
  }
}

std::string TrainLoop::diagnose() const {
  std::string name = first_not_finite(model_.parameters(), model_.parameters().values());
  if (!name.empty()) return "parameter " + name;
  // Forward again, and look at the residual stream in order.
  Probe probe;
  auto watch = [&](const std::string& tap_name) {
    probe.look(tap_name, [&name, tap_name](const Tensor& x) {
      if (!name.empty()) return;
      for (float v : x.to_vector())
        if (!std::isfinite(v)) name = "activation " + tap_name;
    });
  };
  for (const std::string& tap_name : residual_taps(model_.config())) watch(tap_name);
  objective_.look_again(result_.steps);
  if (!name.empty()) return name;
  name = first_not_finite(model_.parameters(), gradient_.values());
  return name.empty() ? "the norm of the gradient, though each of its values is finite" : "gradient of " + name;
}

std::string TrainLoop::last_good() const {
  return saved_at_ >= 0 ? fmt::format("{}/last (step {}) still holds the last good state", config_.out_dir, saved_at_)
                        : fmt::format("what {} held before is as it was", config_.out_dir);
}

void TrainLoop::refuse_not_finite(double loss) {
  const std::string first = diagnose();
  if (config_.on_nan == OnNan::skip) {
    if (hooks_.note)
      hooks_.note(fmt::format("step {} skipped: loss {}, first not finite: {}", result_.steps + 1, loss, first));
    return;
  }
  fail(ErrorKind::numeric,
       "train: at step {} the loss is {} and the first tensor that is not finite is {}; nothing was changed "
       "by this step; {}; try a lower --learning_rate, --grad_clip 1 or warm-up",
       result_.steps + 1, loss, first, last_good());
}

}  // namespace bary
