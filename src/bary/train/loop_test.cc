// SPDX-License-Identifier: Apache-2.0
#include "bary/train/loop.h"

#include "bary/io/run_folder.h"
#include "bary/train/small_model_test.h"
#include "bary/train/text_objective.h"

namespace bary {
namespace {

using namespace test;

TrainResult run(const TrainConfig& t, const Data& data, TrainHooks hooks = {}, ModelConfig m = small_model()) {
  LanguageModel model(m, 3);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, std::move(hooks), {{"who", "test"}});
  return loop.run();
}

TEST(Loop, NStepsAreNUpdates) {  // T36, with an evaluation and a save before the first and after the last
  for (int64_t n : {0, 1, 5, 6}) {
    Data data(400);
    Folder folder;
    TrainConfig t = small_run(folder.path());
    t.max_iters = n;
    std::vector<int64_t> steps, evaluated, saved;
    bool final = false;
    TrainHooks hooks;
    hooks.step = [&](const StepReport& s) {
      steps.push_back(s.step);
      EXPECT_EQ(s.max_iters, n);
    };
    hooks.evaluated = [&](const EvalReport& e) { evaluated.push_back(e.step), final = e.final; };
    const TrainResult r = run(t, data, hooks);
    EXPECT_EQ(r.steps, n);
    ASSERT_EQ(static_cast<int64_t>(steps.size()), n);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(steps[static_cast<size_t>(i)], i + 1);
    std::vector<int64_t> want{0};
    for (int64_t i = 2; i < n; i += 2) want.push_back(i);
    want.push_back(n);
    EXPECT_EQ(evaluated, want);
    EXPECT_TRUE(final);
    LoadedModel last = load_model(folder / "last");
    EXPECT_EQ(last.state["updates"], n);
    EXPECT_EQ(last.state["step"], n);
    EXPECT_EQ(weights_hash(*last.model), r.weights_sha256);
    EXPECT_EQ(r.tokens, n * 4 * 8);
  }
}

TEST(Loop, TheEndIsMeasuredOnTheWholeTexts) {
  Data data(400);
  Folder folder;
  const TrainResult r = run(small_run(folder.path()), data);
  LoadedModel last = load_model(folder / "last");
  EXPECT_EQ(r.val.tokens, (80 - 1) / 8 * 8);
  EXPECT_EQ(r.val.loss_sum, evaluate_all(*last.model, data.data.val, {}, true).loss_sum);
  EXPECT_EQ(r.train.loss_sum, evaluate_all(*last.model, train_sample(data.data), {}, true).loss_sum);
  EXPECT_EQ(train_sample(data.data).size(), 80) << "as many as are held out";
}

// T9: what a step learns from is named by (seed, step, sequence), whatever was evaluated in between.
TEST(Loop, EvaluationsDoNotMoveTheTrainingBatches) {
  Data data(400);
  std::vector<std::vector<double>> losses;
  for (int64_t interval : {0, 1, 3}) {
    Folder folder;
    TrainConfig t = small_run(folder.path());
    t.eval_interval = interval;
    losses.emplace_back();
    TrainHooks hooks;
    hooks.step = [&](const StepReport& s) { losses.back().push_back(s.loss); };
    run(t, data, hooks);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(Loop, ReportsWhatItDoes) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.schedule = {ScheduleKind::linear, 1e-2, 0, 2, 0, 0.2};
  std::vector<StepReport> reports;
  TrainHooks hooks;
  hooks.step = [&](const StepReport& s) { reports.push_back(s); };
  run(t, data, hooks);
  const auto lines = metrics(folder.path());
  std::vector<nlohmann::json> steps, evaluations;
  for (const auto& l : lines) (l.contains("val_loss") ? evaluations : steps).push_back(l);
  ASSERT_EQ(steps.size(), 6u);
  ASSERT_EQ(evaluations.size(), 4u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(reports[i].learning_rate, learning_rate(t.full_schedule(), static_cast<int64_t>(i)));
    EXPECT_EQ(steps[i]["lr"].get<double>(), reports[i].learning_rate);
    EXPECT_EQ(steps[i]["loss"].get<double>(), reports[i].loss);
    EXPECT_GT(reports[i].grad_norm, 0);
    EXPECT_GT(reports[i].tokens_per_second, 0);
    EXPECT_GE(reports[i].eta_seconds, 0);
  }
  EXPECT_EQ(reports.back().eta_seconds, 0);
  EXPECT_EQ(evaluations.back()["whole_text"], true);
  EXPECT_EQ(evaluations.front()["whole_text"], false);
  EXPECT_EQ(nlohmann::json::parse(read_file(folder / "run.json"))["who"], "test");
}

TEST(Loop, BestAndLastAreKept) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.schedule.learning_rate = 3e-2, t.max_iters = 40,
  t.eval_iters = 0;  // random tokens: soon worse on what was not seen
  std::vector<double> losses;
  std::vector<bool> best;
  TrainHooks hooks;
  hooks.evaluated = [&](const EvalReport& e) { losses.push_back(e.val.loss()), best.push_back(e.best); };
  const TrainResult r = run(t, data, hooks);
  double low = HUGE_VAL;
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ(best[i], losses[i] < low);
    low = std::min(low, losses[i]);
  }
  EXPECT_EQ(r.best_val_loss, low);
  ASSERT_LT(r.best_step, 40) << "the test needs a run that gets worse";
  LoadedModel kept = load_model(folder / "best"), last = load_model(folder / "last");
  EXPECT_EQ(kept.state["step"], r.best_step);
  EXPECT_EQ(last.state["step"], 40);
  EXPECT_EQ(evaluate_all(*kept.model, data.data.val, {}, true).loss(), low);
  EXPECT_EQ(load_model(folder.path()).folder, folder / "best") << "a run's folder stands for its best";
  LanguageModel model(small_model(), 9);
  AdamW adamw(model.parameters(), {});
  EXPECT_EQ(resume_into(folder.path(), model, adamw)["step"], 40) << "and a resume goes on from the last";
}

TEST(Loop, PatienceEndsARunThatGetsNoBetter) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.schedule.learning_rate = 0, t.max_iters = 100, t.patience = 3;  // never better than at the start
  const TrainResult r = run(t, data);
  EXPECT_TRUE(r.stopped_early);
  EXPECT_EQ(r.steps, 6);
  EXPECT_EQ(r.best_step, 0);
  EXPECT_EQ(r.val.tokens, 72) << "the whole text is still measured";
  EXPECT_EQ(load_model(folder / "last").state["step"], 6);
}

TEST(Loop, PatienceSurvivesAResume) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.schedule.learning_rate = 0, t.max_iters = 100, t.patience = 3;
  std::atomic<bool> stop{false};
  TrainHooks hooks;
  hooks.stop = &stop;
  hooks.step = [&](const StepReport& s) { stop = s.step == 4; };
  EXPECT_TRUE(run(t, data, hooks).interrupted);
  LanguageModel model(small_model(), 3);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, {}, nlohmann::json::object());
  loop.resume();
  const TrainResult r = loop.run();
  EXPECT_TRUE(r.stopped_early);
  EXPECT_EQ(r.steps, 6) << "two evaluations without improvement before, one after";
}

TEST(Loop, EvalOnlyTouchesNothing) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.eval_only = true;
  int evaluations = 0;
  TrainHooks hooks;
  hooks.evaluated = [&](const EvalReport&) { ++evaluations; };
  hooks.step = [&](const StepReport&) { ADD_FAILURE() << "a step"; };
  const TrainResult r = run(t, data, hooks);
  EXPECT_EQ(evaluations, 1);
  EXPECT_EQ(r.steps, 0);
  EXPECT_EQ(r.weights_sha256, weights_hash(LanguageModel(small_model(), 3)));
  EXPECT_FALSE(checkpoint_exists(folder / "last"));
  EXPECT_FALSE(checkpoint_exists(folder / "best"));
}

TEST(Loop, OnlyTheBestWhereThatIsAsked) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.always_save_checkpoint = false;
  run(t, data);
  EXPECT_TRUE(checkpoint_exists(folder / "best"));
  EXPECT_FALSE(checkpoint_exists(folder / "last"));
  LanguageModel model(small_model(), 9);
  AdamW adamw(model.parameters(), {});
  EXPECT_NO_THROW(resume_into(folder.path(), model, adamw)) << "it holds the optimiser then";
}

TEST(Loop, AnInterruptLosesNothing) {
  for (bool always : {true, false}) {
    Data data(400);
    Folder folder;
    TrainConfig t = small_run(folder.path());
    t.always_save_checkpoint = always, t.eval_interval = 0;
    std::atomic<bool> stop{false};
    TrainHooks hooks;
    hooks.stop = &stop;
    hooks.step = [&](const StepReport& s) { stop = s.step == 3; };
    const TrainResult r = run(t, data, hooks);
    EXPECT_TRUE(r.interrupted);
    EXPECT_EQ(r.steps, 3);
    EXPECT_EQ(load_model(folder / "last").state["step"], 3);
    EXPECT_EQ(r.last_folder, (folder / "last").string());
  }
}

TEST(Loop, AResumeDoesNotTellAStepTwice) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 6, t.eval_interval = 2, t.eval_iters = 1;
  run(t, data);
  const auto whole = metrics(folder.path());
  t.max_iters = 4;
  run(t, data);
  // As a kill leaves it: lines past the checkpoint, the last one torn.
  std::ofstream(folder / "metrics.jsonl", std::ios::app) << "{\"step\":5,\"loss\":1.0}\n{\"step\":6,\"lo";
  t.max_iters = 6;
  LanguageModel model(small_model(), 3);
  const TextObjective again_objective(t, model, data.data);
  TrainLoop again(t, again_objective, {}, {});
  again.resume();
  again.run();
  std::vector<int64_t> steps;
  for (const auto& line : metrics(folder.path()))
    if (line.contains("lr")) steps.push_back(line["step"].get<int64_t>());
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(metrics(folder.path()).back()["val_loss"], whole.back()["val_loss"]);
}

TEST(Loop, WithoutHeldOutTextItStillTrains) {
  Data data(400, 0);
  Folder folder;
  std::vector<int64_t> tokens;
  TrainHooks hooks;
  hooks.evaluated = [&](const EvalReport& e) {
    tokens.push_back(e.val.tokens);
    EXPECT_FALSE(e.best);
  };
  const TrainResult r = run(small_run(folder.path()), data, hooks);
  EXPECT_EQ(tokens, (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(r.train.tokens, 392);
  EXPECT_TRUE(checkpoint_exists(folder / "last"));
}

TEST(Loop, SamplesWhenTheyAreDue) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.sample_interval = 4;
  std::vector<int64_t> at;
  TrainHooks hooks;
  hooks.sample = [&](int64_t step, Model&) { at.push_back(step); };
  run(t, data, hooks);
  EXPECT_EQ(at, (std::vector<int64_t>{4, 6}));
}

TEST(Loop, RefusesBeforeItStarts) {
  Folder folder;
  Data data(400), eight(8, 0), wide(400, 0.2, 40), few(20);
  TrainConfig t = small_run(folder.path());
  EXPECT_TRUE(has(message([&] { run(t, wide); }), "vocabulary of 40"));
  const std::string text = message([&] { run(t, eight); });
  EXPECT_TRUE(has(text, "8 tokens") && has(text, "9")) << text;
  const std::string val = message([&] { run(t, few); });  // 4 held out: fewer than a window
  EXPECT_TRUE(has(val, "4") && has(val, "9")) << val;
  t.out_dir = "/proc/no/such/place";
  EXPECT_TRUE(has(message([&] { run(t, data); }), "/proc/no"));
  t = small_run("");
  EXPECT_TRUE(has(message([&] { run(t, data); }), "out_dir"));
  t = small_run(folder.path());
  t.schedule.min_lr = 2, t.schedule.kind = ScheduleKind::cosine;
  EXPECT_TRUE(has(message([&] { run(t, data); }), "min_lr"));
}

TEST(Loop, LearnsWhatRepeats) {
  Data data(400);
  for (size_t i = 0; i < data.ids.size(); ++i) data.ids[i] = static_cast<int32_t>(i % 5);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 150, t.eval_interval = 0, t.schedule.learning_rate = 1e-2;
  const TrainResult r = run(t, data);
  EXPECT_LT(r.val.loss(), 0.05) << "from ln 29 = 3.4";
}

}  // namespace
}  // namespace bary
