// SPDX-License-Identifier: Apache-2.0
#include "bary/train/config.h"

#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

struct Both {
  Both() : options("train") {
    train.describe(options);
    model.describe(options);
  }
  void parse(const std::vector<std::string>& args) { options.parse_args(args); }
  TrainConfig train;
  ModelConfig model;
  Options options;
};

TEST(TrainConfig, DefaultsAreTheChapters) {
  Both b;
  EXPECT_NO_THROW(b.train.check());
  EXPECT_EQ(b.train.max_iters, 3000);
  EXPECT_EQ(b.train.sequences(), 64);
  EXPECT_EQ(learning_rate(b.train.full_schedule(), 0), 1e-3);
  EXPECT_EQ(learning_rate(b.train.full_schedule(), 2999), 1e-3);
  EXPECT_EQ(b.train.adamw.weight_decay, 0.01);
  EXPECT_EQ(b.train.adamw.beta2, 0.999);
  EXPECT_EQ(b.train.adamw.grad_clip, 0);
}

TEST(TrainConfig, NanoGptsNamesWork) {  // the lingua franca of configuration files
  Both b;
  b.parse({"--out_dir=x",
           "--eval_interval",
           "5",
           "--eval_iters=7",
           "--gradient_accumulation_steps=2",
           "--batch_size=3",
           "--block_size=16",
           "--n_layer=2",
           "--n_head=2",
           "--n_embd=8",
           "--dropout=0.1",
           "--no-bias",
           "--learning_rate=6e-4",
           "--max_iters=10",
           "--weight_decay=0.1",
           "--beta1=0.8",
           "--beta2=0.95",
           "--grad_clip=1",
           "--warmup_iters=2",
           "--lr_decay_iters=9",
           "--min_lr=6e-5",
           "--init_from=scratch",
           "--always_save_checkpoint=false",
           "--eval_only"});
  EXPECT_EQ(b.train.out_dir, "x");
  EXPECT_EQ(b.train.sequences(), 6);
  EXPECT_EQ(b.model.n_embd, 8);
  EXPECT_FALSE(b.model.bias);
  EXPECT_EQ(b.train.schedule.min_lr, 6e-5);
  EXPECT_EQ(b.train.adamw.beta2, 0.95);
  EXPECT_TRUE(b.train.eval_only);
  EXPECT_FALSE(b.train.always_save_checkpoint);
}

TEST(TrainConfig, WordsAndUnits) {
  Both b;
  b.parse({"--eval_iters", "all", "--max_iters", "5k", "--on_nan", "skip", "--lr_schedule", "inv_sqrt", "--decay_group",
           "matrices"});
  EXPECT_EQ(b.train.eval_iters, 0);
  EXPECT_EQ(b.train.max_iters, 5000);
  EXPECT_EQ(b.train.on_nan, OnNan::skip);
  EXPECT_EQ(b.train.schedule.kind, ScheduleKind::inv_sqrt);
  EXPECT_EQ(b.train.adamw.decay, DecayGroup::matrices);
}

TEST(TrainConfig, RefusesWithTheNearestName) {
  auto refused = [](const std::vector<std::string>& args) {
    Both b;
    return message([&] { b.parse(args); });
  };
  EXPECT_TRUE(has(refused({"--max_iter", "5"}), "max_iters"));
  EXPECT_TRUE(has(refused({"--lr_schedule", "cosin"}), "cosine"));
  for (const char* name : {"batch_size", "gradient_accumulation_steps", "log_interval", "eval_iters"})
    EXPECT_TRUE(has(refused({std::string("--") + name, "0"}), name)) << name;
  EXPECT_TRUE(has(refused({"--val_fraction", "1"}), "val_fraction"));
  EXPECT_TRUE(has(refused({"--learning_rate", "nan"}), "learning_rate"));
  EXPECT_TRUE(has(refused({"--max_iters", "-1"}), "max_iters"));
}

TEST(TrainConfig, DecayEndsWithTheRunUnlessSaid) {
  TrainConfig t;
  t.schedule.kind = ScheduleKind::cosine, t.max_iters = 40;
  EXPECT_EQ(t.full_schedule().decay_iters, 40);
  t.schedule.decay_iters = 20;
  EXPECT_EQ(t.full_schedule().decay_iters, 20);
  t.schedule.decay_iters = 0, t.max_iters = 0;
  EXPECT_NO_THROW(t.check());
}

TEST(TrainConfig, RangesHoldForPrograms) {  // as for the command line
  auto refused = [](auto change) {
    TrainConfig c;
    change(c);
    EXPECT_THROW(c.check(), Error);
  };
  refused([](TrainConfig& c) { c.log_interval = 0; });
  refused([](TrainConfig& c) { c.eval_iters = -1; });
  refused([](TrainConfig& c) { c.batch_size = 0; });
  refused([](TrainConfig& c) { c.adamw.beta1 = 1; });
  refused([](TrainConfig& c) { c.max_iters = -1; });
}

}  // namespace
}  // namespace bary
