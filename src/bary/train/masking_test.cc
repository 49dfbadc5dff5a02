// SPDX-License-Identifier: Apache-2.0
#include "bary/train/masking.h"

#include <cmath>

#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

struct Exercise {
  std::vector<int32_t> text, inputs, targets;
  Exercise(std::vector<int32_t> window, int32_t mask, int64_t V, const MaskName& name)
      : text(std::move(window)), inputs(text), targets(text.size(), 77) {
    hide_tokens(mask, V, name, inputs, targets);
  }
};

// Five standard deviations of a binomial count: passed over by a right count once in 1.7 million.
void expect_share(int64_t count, int64_t of, double p, const char* what) {
  const double n = static_cast<double>(of);
  EXPECT_NEAR(static_cast<double>(count), n * p, 5 * std::sqrt(n * p * (1 - p))) << what;
}

TEST(Masking, FifteenOfAHundredOfThemEightyTenTen) {
  const int64_t T = 64, V = 1000, windows = 4000;
  const int32_t mask = 999;
  int64_t asked = 0, masked = 0, same = 0, other = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const Exercise e(random_ids(T, V - 1, static_cast<uint64_t>(w)), mask, V, {5, 1, static_cast<uint64_t>(w)});
    for (size_t t = 0; t < e.text.size(); ++t) {
      if (e.targets[t] < 0) continue;
      ++asked;
      ++(e.inputs[t] == mask ? masked : e.inputs[t] == e.text[t] ? same : other);
    }
  }
  // Each with 0.15, and any of the T where none was drawn: p of any single one, the variance a little below p(1-p).
  const double p = 0.15 + std::pow(0.85, T) / T;
  expect_share(asked, windows * T, p, "asked");
  expect_share(masked, asked, 0.8 + 0.1 / V, "hidden, or changed into the mask by chance");
  expect_share(same, asked, 0.1 + 0.1 / V, "as they were, or changed into themselves by chance");
  expect_share(other, asked, 0.1 * (1 - 2.0 / V), "changed");
}

TEST(Masking, NoPositionComesBeforeAnother) {
  for (int64_t T : {2, 3, 20}) {
    const int64_t windows = 5000;
    std::vector<int64_t> at(static_cast<size_t>(T), 0);
    for (int64_t w = 0; w < windows; ++w) {
      const Exercise e(random_ids(T, 28), 28, 29, {1, 4, static_cast<uint64_t>(w)});
      for (size_t t = 0; t < at.size(); ++t) at[t] += e.targets[t] >= 0;
    }
    const double p = 0.15 + std::pow(0.85, static_cast<double>(T)) / static_cast<double>(T);
    for (int64_t n : at) expect_share(n, windows, p, "any of them");
  }
}

TEST(Masking, ChangedTokensAreAnyOfTheVocabulary) {
  const int64_t T = 500, V = 4;
  std::vector<int64_t> seen(V, 0);
  int64_t changed = 0;
  for (uint64_t w = 0; w < 400; ++w) {
    const Exercise e(std::vector<int32_t>(T, 1), 3, V, {9, 2, w});
    for (int32_t id : e.inputs) {
      ASSERT_TRUE(id >= 0 && id < V);
      if (id == 0 || id == 2) ++seen[static_cast<size_t>(id)], ++changed;
    }
  }
  expect_share(seen[0], changed, 0.5, "two tokens that are neither the mask nor themselves");
  const double p = 0.15 + std::pow(0.85, T) / T;
  expect_share(changed, 400 * T, p * 0.1 * 0.5, "half of the changes");
}

TEST(Masking, WhatIsNotAskedForIsLeftAlone) {
  for (int64_t T : {1, 2, 3, 8, 100})
    for (uint64_t w = 0; w < 200; ++w) {
      const Exercise e(random_ids(T, 28, w), 28, 29, {1, 2, w});
      int64_t asked = 0;
      for (size_t t = 0; t < e.text.size(); ++t) {
        if (e.targets[t] == -1) {
          EXPECT_EQ(e.inputs[t], e.text[t]);
        } else {
          EXPECT_EQ(e.targets[t], e.text[t]);
          ++asked;
        }
        EXPECT_TRUE(e.inputs[t] >= 0 && e.inputs[t] < 29);
      }
      EXPECT_GE(asked, 1) << "a window that asks for nothing teaches nothing";
      if (T == 1) {
        EXPECT_EQ(asked, 1);
      }
    }
}

TEST(Masking, ANameDecides) {
  const auto text = random_ids(64, 28);
  auto exercise = [&](uint64_t seed, uint64_t step, uint64_t sequence) {
    const Exercise e(text, 28, 29, {seed, step, sequence});
    return std::pair(e.inputs, e.targets);
  };
  const auto once = exercise(1, 2, 3);
  EXPECT_NE(exercise(2, 2, 3), once);
  EXPECT_NE(exercise(1, 3, 3), once);
  EXPECT_NE(exercise(1, 2, 4), once);
  EXPECT_EQ(exercise(1, 2, 3), once) << "whatever was drawn in between";
}

// A model without blocks that answers with its input, surely
LanguageModel echo(int64_t V, int64_t T) {
  ModelConfig c;
  c.arch = Arch::encoder, c.vocab_size = V, c.n_embd = V, c.n_head = 1, c.n_layer = 0, c.block_size = T;
  c.pos = Position::none, c.head_bias = false;
  LanguageModel model(c, 1);
  Parameters& p = model.parameters();
  std::fill_n(p.values(), p.size(), 0.0f);
  for (const char* name : {"transformer.wte.weight", "lm_head.weight"}) {
    auto table = p.values_of(*p.find(name));
    for (int64_t i = 0; i < V; ++i) table[static_cast<size_t>(i * V + i)] = 3;
  }
  p.changed();
  return model;
}

TEST(EvaluateMasked, EveryTokenAskedForIsHidden) {
  const int64_t V = 29, T = 8;
  const auto text = random_ids(401, V - 1);
  const LanguageModel model = echo(V, T);
  const Evaluation e = evaluate_masked(model, text, V - 1, 0, 1);
  EXPECT_EQ(e.sequences, 50) << "windows that follow each other";
  EXPECT_EQ(e.right, 0) << "the echo of a mask is a mask: no token asked for may show";
  // all that the model says is 9 for the mask and 0 for the others
  EXPECT_NEAR(e.loss(), std::log(std::exp(9.0) + V - 1), 1e-5);
  EXPECT_GE(e.tokens, 50);
  EXPECT_LT(e.tokens, 200);
  EXPECT_EQ(evaluate_masked(model, text, V - 1, 12, 1).sequences, 12);
  EXPECT_EQ(e.exact, 0);
}

TEST(EvaluateMasked, WindowsFollowEachOtherThroughTheText) {
  LanguageModel model = echo(29, 8);
  Parameters& p = model.parameters();
  p.values_of(*p.find("lm_head.weight"))[4 * 29 + 28] = 9;  // a mask is a 4, whatever stood there
  p.changed();
  std::vector<int32_t> text(200, 3);
  text.resize(401, 4);
  const Evaluation e = evaluate_masked(model, text, 28, 0, 1);
  EXPECT_EQ(e.sequences, 50);
  EXPECT_EQ(e.exact, 25) << "the half with 4s";
  EXPECT_GE(e.right, 25);
  EXPECT_LT(e.right, e.tokens);
}

TEST(EvaluateMasked, TheSameBitsOnAnyNumberOfThreads) {
  ModelConfig c = small_model();
  c.arch = Arch::encoder;
  const LanguageModel model(c, 3);
  const auto text = random_ids(333, 28);
  for (int64_t count : {0, 20}) {
    std::vector<Evaluation> seen;
    for (int n : {1, 2, 3}) {
      Threads as(n);
      seen.push_back(evaluate_masked(model, text, 28, count, 4));
    }
    for (const Evaluation& e : seen) {
      EXPECT_EQ(e.loss_sum, seen[0].loss_sum);
      EXPECT_EQ(e.tokens, seen[0].tokens);
      EXPECT_EQ(e.right, seen[0].right);
    }
    EXPECT_NE(evaluate_masked(model, text, 28, count, 5).loss_sum, seen[0].loss_sum) << "the seed asks for others";
  }
}

TEST(EvaluateMasked, AnEncoderLearnsAPattern) {
  Threads one(1);
  const int64_t V = 8;
  std::vector<int32_t> ids(2000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 7);  // 7 is the mask
  TrainData data;
  const TokenSplit split = split_tokens(ids, 0.1);
  data.train = split.train, data.val = split.val, data.vocab_size = V, data.mask_token = 7;
  ModelConfig c = small_model();
  c.arch = Arch::encoder, c.vocab_size = V;
  Folder folder;
  TrainConfig t = small_run(folder.path());
  t.batch_size = 16, t.max_iters = 600, t.eval_interval = 0, t.schedule.learning_rate = 5e-3;
  LanguageModel model(c, 3);
  const Evaluation before = evaluate_masked(model, data.val, 7, 0, 1);
  std::vector<double> losses;
  TrainHooks hooks;
  hooks.step = [&](const StepReport& s) { losses.push_back(s.loss); };
  const TextObjective objective(t, model, data);
  const TrainResult r = TrainLoop(t, objective, hooks, {{"who", "test"}}).run();
  EXPECT_GT(before.loss(), 1.5) << "of log 8 = 2.08 at the most for chance";
  EXPECT_LT(before.accuracy(), 0.5);
  EXPECT_GT(losses.front(), 1.5);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  EXPECT_GT(r.val.accuracy(), 0.95);
  EXPECT_LT(r.val.loss(), 0.2);
}

}  // namespace
}  // namespace bary
