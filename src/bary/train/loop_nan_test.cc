// SPDX-License-Identifier: Apache-2.0
// A loss or gradient that is not finite (T22): where it is stopped, what is said, and that nothing good is lost.
#include <limits>

#include "bary/io/run_folder.h"
#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

const float kNan = std::numeric_limits<float>::quiet_NaN();

// Runs and, after step `at`, writes `value` into the first number of parameter `name`.
struct Damaged {
  Damaged(TrainConfig config, const Data& d, int64_t at, const std::string& name, float value)
      : model(small_model(), 3), t(std::move(config)), objective(t, model, d.data) {
    hooks.step = [this, at, name, value](const StepReport& s) {
      steps.push_back(s.step);
      if (s.step != at) return;
      model.parameters().values_of(*model.parameters().find(name))[0] = value;
      model.parameters().changed();
    };
    hooks.note = [this](const std::string& n) { notes.push_back(n); };
    loop = std::make_unique<TrainLoop>(t, objective, hooks, nlohmann::json::object());
  }
  LanguageModel model;
  TrainConfig t;
  TextObjective objective;
  TrainHooks hooks;
  std::vector<int64_t> steps;
  std::vector<std::string> notes;
  std::unique_ptr<TrainLoop> loop;
};

TEST(NotFinite, StopsAndNamesStepAndTensor) {
  Data data(400);
  Folder folder;
  Damaged d(small_run(folder.path()), data, 3, "transformer.h.0.mlp.c_fc.bias", kNan);
  const std::string said = message([&] { d.loop->run(); }, ErrorKind::numeric);
  EXPECT_TRUE(has(said, "step 4") && has(said, "transformer.h.0.mlp.c_fc.bias")) << said;
  EXPECT_TRUE(has(said, "last (step 2)")) << said;
  LoadedModel last = load_model(folder / "last");  // of the evaluation at step 2
  EXPECT_EQ(last.state["step"], 2);
  EXPECT_EQ(first_not_finite(last.model->parameters(), last.model->parameters().values()), "");
}

TEST(NotFinite, NamesTheFirstActivation) {
  Data data(400);
  Folder folder;
  ModelConfig c = small_model();
  c.norm = NormPlace::none;
  LanguageModel model(c, 3);
  auto up = model.parameters().values_of(*model.parameters().find("transformer.h.0.mlp.c_fc.weight"));
  auto down = model.parameters().values_of(*model.parameters().find("transformer.h.0.mlp.c_proj.weight"));
  std::fill(up.begin(), up.end(), 1e30f), std::fill(down.begin(), down.end(), 1e30f);
  model.parameters().changed();
  TrainConfig t = small_run(folder.path());
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, {}, nlohmann::json::object());
  const std::string said = message([&] { loop.run(); }, ErrorKind::numeric);
  EXPECT_TRUE(has(said, "step 1") && has(said, "blocks.0.hook_resid_post")) << said;
}

TEST(NotFinite, NamesTheGradientWhereOnlyThatIs) {
  Data data(400);
  Folder folder;
  ModelConfig c = small_model();
  c.n_layer = 0, c.head_bias = false;
  LanguageModel model(c, 3);
  Parameters& p = model.parameters();
  // logits of size 1 from 1e-25 times 1e25: the loss is finite, the gradient of the table (its square 1e50) overflows
  for (float& v : p.values_of(*p.find("transformer.wte.weight"))) v *= 1e-25f;
  for (float& v : p.values_of(*p.find("transformer.wpe.weight"))) v *= 1e-25f;
  for (float& v : p.values_of(*p.find("lm_head.weight"))) v *= 1e25f;
  p.changed();
  const std::vector<float> before = values(model);
  const TrainConfig loop_config = small_run(folder.path());
  const TextObjective objective(loop_config, model, data.data);
  TrainLoop loop(loop_config, objective, {}, nlohmann::json::object());
  const std::string said = message([&] { loop.run(); }, ErrorKind::numeric);
  EXPECT_TRUE(has(said, "step 1") && has(said, "gradient")) << said;
  EXPECT_EQ(values(model), before) << "nothing was changed by the step";
}

TEST(NotFinite, SkipLeavesWeightsAndMomentsAsTheyAre) {
  Data data(400);
  Folder folder, reference;
  TrainConfig t = small_run(folder.path());
  t.on_nan = OnNan::skip, t.eval_interval = 0, t.max_iters = 4;
  LanguageModel model(small_model(), 3);
  Parameters& p = model.parameters();
  const Parameter& row = *p.find("transformer.wte.weight");
  float kept = 0;
  std::vector<std::string> notes;
  std::vector<float> during;
  TrainHooks hooks;
  hooks.note = [&](const std::string& n) { notes.push_back(n); };
  hooks.step = [&](const StepReport& s) {
    float& v = p.values_of(row)[0];
    if (s.step == 2) {  // damaged for one step, and mended again
      kept = v;
      during = values(model);
      for (float& x : p.values_of(row)) x = x == v ? kNan : x;
      std::fill(p.values_of(row).begin(), p.values_of(row).end(), kNan);
    } else if (s.step == 3) {
      std::copy_n(during.begin() + row.offset, row.shape.volume(), p.values_of(row).begin());
      EXPECT_EQ(values(model), during);
    }
    p.changed();
  };
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, hooks, nlohmann::json::object());
  const TrainResult r = loop.run();
  EXPECT_EQ(r.steps, 4) << "a skipped step counts as a step";
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(has(notes[0], "step 3") && has(notes[0], "transformer.wte.weight")) << notes[0];
  LoadedModel last = load_model(folder / "last");
  EXPECT_EQ(last.state["step"], 4);
  EXPECT_EQ(last.state["updates"], 3) << "and not as an update";
}

TEST(NotFinite, DamagedWeightsAreNeverSaved) {
  for (OnNan how : {OnNan::stop, OnNan::skip}) {
    Data data(400);
    Folder folder;
    TrainConfig t = small_run(folder.path());
    t.on_nan = how;
    Damaged d(t, data, 4, "lm_head.bias", std::numeric_limits<float>::infinity());  // an evaluation and a save follow
    const std::string said = message([&] { d.loop->run(); }, ErrorKind::numeric);
    EXPECT_TRUE(has(said, "lm_head.bias") && has(said, "step 4") && has(said, "last (step 2)")) << said;
    EXPECT_EQ(load_model(folder / "last").state["step"], 2);
    EXPECT_LE(load_model(folder / "best").state["step"].get<int64_t>(), 2);
  }
}

TEST(NotFinite, AValidationLossThatIsNoNumberIsNeverBest) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  int evaluations = 0;
  LanguageModel model(small_model(), 3);
  std::fill_n(model.parameters().values(), model.parameters().size(), kNan);
  model.parameters().changed();
  TrainHooks hooks;
  hooks.evaluated = [&](const EvalReport& e) {
    ++evaluations;
    EXPECT_TRUE(std::isnan(e.val.loss()));
    EXPECT_FALSE(e.best);
  };
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, hooks, nlohmann::json::object());
  message([&] { loop.run(); }, ErrorKind::numeric);
  EXPECT_EQ(evaluations, 1);
  EXPECT_FALSE(checkpoint_exists(folder / "best"));
  EXPECT_TRUE(metrics(folder.path()).front()["val_loss"].is_null()) << "JSON has no NaN";
}

TEST(NotFinite, AHugeLearningRateEndsInAClearError) {
  Data data(400);
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.schedule.learning_rate = 1e6, t.adamw.weight_decay = 100, t.max_iters = 50;
  LanguageModel model(small_model(), 3);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, {}, nlohmann::json::object());
  const std::string said = message([&] { loop.run(); }, ErrorKind::numeric);
  EXPECT_TRUE(has(said, "not finite") && has(said, "learning_rate")) << said;
  LoadedModel last = load_model(folder / "last");
  EXPECT_EQ(first_not_finite(last.model->parameters(), last.model->parameters().values()), "");
}

}  // namespace
}  // namespace bary
