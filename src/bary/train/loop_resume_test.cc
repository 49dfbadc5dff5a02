// SPDX-License-Identifier: Apache-2.0
// A run that was broken off, wherever that was, is the run that was not.
#include <stdexcept>

#include "bary/base/file.h"
#include "bary/io/run_folder.h"
#include "bary/train/loop.h"
#include "bary/train/small_model_test.h"
#include "bary/train/text_objective.h"

namespace bary {
namespace {

using namespace test;

TrainResult run(const TrainConfig& t, const Data& data, bool resume = false, TrainHooks hooks = {}) {
  LanguageModel model(small_model(), 3);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, std::move(hooks), {{"who", "test"}});
  if (resume) loop.resume();
  return loop.run();
}

nlohmann::json state_of(const std::filesystem::path& checkpoint) {
  return nlohmann::json::parse(read_file(checkpoint / "state.json"));
}

struct Never : TrainConfig {  // better than at the start: patience ends it at step 6
  explicit Never(const std::string& folder) : TrainConfig(small_run(folder)) {
    schedule.learning_rate = 0, max_iters = 100, patience = 3;
  }
};

TEST(LoopResume, FromTheVeryBeginning) {
  for (bool always : {true, false}) {
    Data data(400);
    Folder folder;
    Never t(folder.path());
    t.max_iters = 0, t.always_save_checkpoint = always;
    run(t, data);
    t.max_iters = 100;
    const TrainResult r = run(t, data, true);
    EXPECT_EQ(r.steps, 6);
    EXPECT_EQ(r.best_step, 0);
    EXPECT_EQ(state_of(folder / "best")["step"], 0);
    int starts = 0;
    std::istringstream lines(read_file(folder / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) starts += nlohmann::json::parse(line)["step"] == 0;
    EXPECT_EQ(starts, 1) << "the start is judged once";
  }
}

TEST(LoopResume, WhatPatienceEndedHasEnded) {
  Data data(400);
  Folder folder;
  const Never t(folder.path());
  const TrainResult first = run(t, data);
  for (int i = 0; i < 3; ++i) {
    const TrainResult again = run(t, data, true);
    EXPECT_TRUE(again.stopped_early);
    EXPECT_EQ(again.steps, 6);
    EXPECT_EQ(again.tokens, 0);
    EXPECT_EQ(again.weights_sha256, first.weights_sha256);
  }
}

TEST(LoopResume, BrokenOffInItsLastLook) {
  Data data(400);
  Folder folder;
  const Never t(folder.path());
  TrainHooks hooks;
  hooks.evaluated = [](const EvalReport& e) {
    if (e.final) throw std::runtime_error("the power went");
  };
  EXPECT_THROW(run(t, data, false, hooks), std::runtime_error);
  EXPECT_EQ(state_of(folder / "last")["step"], 6);
  EXPECT_EQ(run(t, data, true).steps, 6);
}

TEST(LoopResume, BrokenOffBetweenBestAndLast) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 6, t.schedule.learning_rate = 1e-2;
  TrainHooks hooks;
  int saved = 0;
  hooks.saved = [&](const std::string&) {
    if (++saved == 5) throw std::runtime_error("the disk is full");
  };
  EXPECT_THROW(run(t, data, false, hooks), std::runtime_error);
  const TrainResult r = run(t, data, true);
  EXPECT_EQ(state_of(folder / "best")["step"], r.best_step);
  EXPECT_EQ(state_of(folder / "last")["best_step"], r.best_step);
}

TEST(LoopResume, AFinishedRunKeepsItsRecord) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 6;
  run(t, data);
  const nlohmann::json before = state_of(folder / "last");
  const auto lines = [&] {
    const std::string all = read_file(folder / "metrics.jsonl");
    return std::count(all.begin(), all.end(), '\n');
  };
  const auto metrics = lines();
  run(t, data, true);
  EXPECT_EQ(state_of(folder / "last"), before);
  EXPECT_EQ(lines(), metrics);
}

TEST(LoopResume, AnotherMeasureDecidesTheBestAnew) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 4;
  run(t, data);
  t.max_iters = 8, t.eval_seed += 1;
  std::vector<std::string> notes;
  TrainHooks hooks;
  hooks.note = [&](const std::string& n) { notes.push_back(n); };
  EXPECT_GE(run(t, data, true, hooks).best_step, 4);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("eval_seed"), std::string::npos);
}

TEST(LoopResume, TheLaterOfBestAndLast) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.always_save_checkpoint = false, t.eval_interval = 2, t.max_iters = 100, t.schedule.learning_rate = 1e-2;
  std::atomic<bool> stop{false};
  TrainHooks hooks;
  hooks.stop = &stop;
  hooks.step = [&](const StepReport& s) { stop = s.step == 3; };
  EXPECT_TRUE(run(t, data, false, hooks).interrupted);
  t.max_iters = 40, stop = false, hooks.step = {};
  const TrainResult r = run(t, data, true, hooks);
  ASSERT_GT(r.best_step, 3);
  LanguageModel model(small_model(), 9);
  AdamW adamw(model.parameters(), {});
  EXPECT_EQ(resume_into(folder.path(), model, adamw)["step"], r.best_step);
}

TEST(Loop, WithNothingHeldOutSomethingMustBeKept) {
  Data data(400, 0);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.always_save_checkpoint = false;
  EXPECT_THROW(run(t, data), Error);
  t.always_save_checkpoint = true, t.patience = 2;
  EXPECT_THROW(run(t, data), Error);
}

TEST(Loop, TheEndIsSavedBeforeItIsMeasured) {  // whole texts may take longer than a person waits
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.eval_interval = 0, t.max_iters = 5;
  TrainHooks hooks;
  hooks.evaluated = [](const EvalReport& e) {
    if (e.final) throw std::runtime_error("the power went");
  };
  EXPECT_THROW(run(t, data, false, hooks), std::runtime_error);
  EXPECT_EQ(load_model(folder / "last").state["step"], 5);
}

TEST(Loop, WhatIsSavedKnowsOfTheLastLook) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.max_iters = 5, t.schedule.learning_rate = 1e-2;
  const TrainResult r = run(t, data);
  const nlohmann::json state = load_model(folder / "last").state;
  EXPECT_EQ(state["best_val_loss"], r.best_val_loss);
  EXPECT_EQ(state["best_step"], r.best_step);
}

}  // namespace
}  // namespace bary
