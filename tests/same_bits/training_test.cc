// SPDX-License-Identifier: Apache-2.0
// One configuration, one result: fifty steps give the same weights whatever the number of threads, with and without
// anybody watching, and however the sequences of a step are cut into batches.
#include "bary/generate/generate.h"
#include "bary/tensor/buffer.h"
#include "bary/tensor/tap.h"
#include "small_run.h"

namespace bary::same_bits {
namespace {

struct Case {
  const char* name;
  double dropout;
  bool tied;  // one table, used twice in a step
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class Training : public testing::TestWithParam<Case> {
 protected:
  Training() : data(20000, 256) {
    model = small_block();
    model.dropout = GetParam().dropout, model.tie_embeddings = GetParam().tied;
  }
  std::string run(const std::function<void(TrainConfig&)>& change = {}, TrainHooks hooks = {}) {
    Folder folder;
    TrainConfig t = fifty_steps(folder.path());
    t.max_iters = steps();
    if (change) change(t);
    return weights_after(model, t, data, std::move(hooks));
  }
  int64_t steps() const { return model.dropout > 0 ? 20 : 50; }
  Data data;
  ModelConfig model;
};

TEST_P(Training, ThreadsDoNotMatter) {
  std::vector<std::string> hashes;
  for (int n : {1, 2, 3}) {
    Threads limit(n);
    hashes.push_back(run());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST_P(Training, WatchingDoesNotMatter) {
  const std::string alone = run();
  int64_t samples = 0, evaluations = 0, seen = 0;
  TrainHooks hooks;
  hooks.sample = [&](int64_t, Model& m) {
    auto& editable = static_cast<LanguageModel&>(m);  // generation may only make tables longer
    GenerateOptions o;
    o.max_new_tokens = 5;
    samples += static_cast<int64_t>(generate(editable, Tokenizer::bytes(), {"ab", "c"}, o).size());
    Probe probe;
    probe.look("blocks.0.attn.hook_pattern", [&](const Tensor& p) { seen += p.rows(); });
    editable.hidden(std::vector<int32_t>{1, 2, 3}, 1);
  };
  hooks.evaluated = [&](const EvalReport&) { ++evaluations; };
  const std::string watched = run(
      [](TrainConfig& t) {
        t.eval_interval = 1, t.sample_interval = 7, t.save_interval = 3, t.eval_iters = 3, t.eval_seed = 9,
        t.log_interval = 1;
      },
      hooks);
  EXPECT_EQ(watched, alone);
  EXPECT_EQ(evaluations, steps() + 1);          // before the first step, after each
  const int64_t samplings = (steps() + 6) / 7;  // every seventh step and after the last
  EXPECT_EQ(samples, 2 * samplings);
  EXPECT_EQ(seen, samplings * 4 * 3);
}

TEST_P(Training, AccumulationDoesNotMatter) {
  const std::string at_once = run();
  for (int64_t batch : {4, 1}) {
    EXPECT_EQ(at_once, run([&](TrainConfig& t) { t.batch_size = batch, t.gradient_accumulation_steps = 8 / batch; }))
        << batch;
  }
}

TEST_P(Training, TheWayThroughTheLayersDoesNotMatter) {
  const std::string deep = run([](TrainConfig& t) { t.traversal = Traversal::depth_first; });
  for (int n : {1, 2, 3}) {
    Threads limit(n);
    EXPECT_EQ(deep, run([](TrainConfig& t) { t.traversal = Traversal::layer_by_layer; })) << n << " threads";
  }
  EXPECT_EQ(deep, run([](TrainConfig& t) {
              t.traversal = Traversal::layer_by_layer, t.batch_size = 2, t.gradient_accumulation_steps = 4;
            }));
}

TEST_P(Training, TheSeedMatters) {  // so that the equalities above are worth something
  const std::string alone = run();
  EXPECT_NE(alone, run([](TrainConfig& t) { t.seed = 1338; }));
  EXPECT_NE(alone, run([&](TrainConfig& t) { t.max_iters = steps() - 1, t.schedule.decay_iters = steps(); }));
  EXPECT_NE(alone, run([](TrainConfig& t) { t.batch_size = 7; }));
}

INSTANTIATE_TEST_SUITE_P(Of, Training,
                         testing::Values(Case{"Plain", 0, false}, Case{"Dropout", 0.2, false}, Case{"Tied", 0, true}),
                         [](const auto& which) { return std::string(which.param.name); });

// Weights after six steps of `sequences` short ones, `batch` at a time
std::string six_steps(const ModelConfig& shape, int64_t sequences, int64_t batch, int n) {
  const Data data(5000, 61);
  ModelConfig m = shape;
  m.vocab_size = 61, m.block_size = 8;
  Threads limit(n);
  Folder folder;
  TrainConfig t = fifty_steps(folder.path());
  t.max_iters = 6, t.batch_size = batch, t.gradient_accumulation_steps = sequences / batch;
  return weights_after(m, t, data);
}

TEST(Accumulation, GroupsOfSeveralSequencesToo) {  // 64 sequences go in groups of four
  ModelConfig m;
  m.n_embd = 32;
  const std::string at_once = six_steps(m, 64, 64, 2);
  EXPECT_EQ(at_once, six_steps(m, 64, 32, 1));
  EXPECT_EQ(at_once, six_steps(m, 64, 16, 3));
}

TEST(Accumulation, OfRecurrentLayersWithOneTable) {  // which go layer by layer whatever is asked for
  ModelConfig m;
  m.arch = Arch::lstm, m.n_embd = 16, m.tie_embeddings = true;
  const std::string at_once = six_steps(m, 32, 32, 2);
  EXPECT_EQ(at_once, six_steps(m, 32, 8, 1));
  EXPECT_EQ(at_once, six_steps(m, 32, 2, 3));
}

TEST(Memory, IsFlatOverTwoHundredSteps) {
  Data data(20000, 256);
  ModelConfig m = small_block();
  m.n_embd = 32, m.dropout = 0.1, m.n_layer = 2;
  Folder folder;
  TrainConfig t = fifty_steps(folder.path());
  t.max_iters = 200, t.eval_interval = 50, t.eval_iters = 4, t.batch_size = 4;
  std::vector<int64_t> floats;
  TrainHooks hooks;
  hooks.step = [&](const StepReport&) { floats.push_back(pooled_floats()); };
  int64_t alone = 0;
  for (int n : {1, 2}) {
    Threads limit(n);
    floats.clear();
    weights_after(m, t, data, hooks);
    ASSERT_EQ(floats.size(), 200u);
    if (n == 1) {
      alone = floats[1];
      EXPECT_EQ(floats[199], alone);
    } else {  // on a busy machine the second thread may meet a shape late, but never needs more than the first
      EXPECT_LE(floats[199], 2 * alone);
    }
  }
}

}  // namespace
}  // namespace bary::same_bits
