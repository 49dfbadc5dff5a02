// SPDX-License-Identifier: Apache-2.0
// From text to a model that has learned it, in seconds, through the same parts as a real run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bary/generate/generate.h"
#include "bary/train/loop.h"
#include "bary/train/text_objective.h"

namespace bary {
namespace {

struct Trained {
  TrainData data;
  std::unique_ptr<LanguageModel> model;
  TrainResult result;
  double first_loss = 0;
};

class Tiny : public testing::Test {
 protected:
  Tiny() {
    std::string name = (std::filesystem::temp_directory_path() / "bary-tiny-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~Tiny() override { std::filesystem::remove_all(folder); }

  Trained train(const std::string& text, ModelConfig m, TrainConfig t, const std::string& tokenizer = "char") {
    std::ofstream(folder / "text.txt") << text;
    Trained out;
    DataOptions o;
    o.dataset = (folder / "text.txt").string(), o.tokenizer = tokenizer, o.vocab_size = m.vocab_size;
    out.data = TrainData::load(o, std::nullopt);
    m.vocab_size = out.data.vocab_size;
    out.model = std::make_unique<LanguageModel>(m, t.seed);
    t.out_dir = (folder / "run").string(), t.eval_interval = 0, t.eval_iters = 8;
    TrainHooks hooks;
    hooks.evaluated = [&](const EvalReport& e) {
      if (e.step == 0) out.first_loss = e.val.loss();
    };
    const TextObjective objective(t, *out.model, out.data);
    TrainLoop loop(t, objective, hooks, nlohmann::json::object());
    out.result = loop.run();
    return out;
  }
  std::filesystem::path folder;
};

ModelConfig model(int64_t block_size) {
  ModelConfig c;
  c.block_size = block_size, c.n_embd = 32, c.n_head = 4;
  return c;
}
TrainConfig run(int64_t steps, double rate) {
  TrainConfig t;
  t.max_iters = steps, t.batch_size = 8, t.schedule.learning_rate = rate;
  return t;
}

TEST_F(Tiny, ASentenceThatRepeatsIsLearnedAndContinued) {
  std::string text;
  const std::string sentence = "the quick brown fox jumps over the lazy dog. ";
  while (text.size() < 4000) text += sentence;
  Trained t = train(text, model(48), run(200, 5e-3));
  EXPECT_GT(t.first_loss, 2.5);
  EXPECT_LT(t.result.val.loss(), 0.1);
  GenerateOptions o;
  o.max_new_tokens = 20, o.sampler.temperature = 0;
  // a prompt long enough to tell the two "the" apart, short enough for the window
  EXPECT_EQ(generate(*t.model, *t.data.tokenizer, {sentence.substr(20)}, o)[0].text, sentence.substr(0, 20));
}

TEST_F(Tiny, CopyingNeedsAttention) {  // each letter twice at a distance: no table of pairs can do it
  std::string text;
  RandomStream random(1, Purpose::test);
  while (text.size() < 12000) {
    const std::string word{static_cast<char>('a' + random.below(8)), static_cast<char>('a' + random.below(8))};
    text += word + word + " ";
  }
  // of five characters two are free (ln 8 each): 2 ln 8 / 5 = 0.83 is the least possible
  const double least = 2 * std::log(8.0) / 5;
  ModelConfig with = model(32), without = model(32);
  with.n_layer = 2, without.n_layer = 2, without.mixer = Mixer::none;
  const double attention = train(text, with, run(250, 5e-3)).result.val.loss();
  const double none = train(text, without, run(100, 5e-3)).result.val.loss();
  EXPECT_LT(attention, least + 0.15);
  EXPECT_GT(attention, least - 0.05) << "below what chance allows: it sees the answer";
  EXPECT_GT(none, attention + 0.4);
}

TEST_F(Tiny, WithoutTheMaskItReadsTheAnswer) {
  std::string text;
  RandomStream random(1, Purpose::test);
  while (text.size() < 8000) text += static_cast<char>('a' + random.below(8));  // nothing to learn: ln 8 = 2.08
  ModelConfig c = model(16);
  Trained honest = train(text, c, run(150, 5e-3));
  c.mask = Mask::full;
  Trained cheat = train(text, c, run(150, 5e-3));
  EXPECT_GT(honest.result.val.loss(), 2.0);
  EXPECT_LT(cheat.result.val.loss(), 1.0);
}

TEST_F(Tiny, BytePairsToo) {
  std::string text;
  while (text.size() < 6000) text += "she sells sea shells on the sea shore. ";
  ModelConfig c = model(16);
  c.vocab_size = 280, c.pos = Position::rotary, c.norm_kind = NormKind::rms, c.mlp = MlpKind::swiglu,
  c.tie_embeddings = true;
  c.head_bias = false, c.init = InitStyle::gpt2;
  Trained t = train(text, c, run(100, 5e-3), "bpe");
  EXPECT_NEAR(t.first_loss, std::log(280.0), 0.1);
  EXPECT_LT(t.result.val.loss(), 0.2);
  EXPECT_GT(t.result.val.bits_per_byte(), 0);
}

}  // namespace
}  // namespace bary
