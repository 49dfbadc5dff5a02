// SPDX-License-Identifier: Apache-2.0
#include "bary/train/probe.h"

#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

ModelConfig probed(int64_t T = 64) {
  ModelConfig c = small_model();
  c.block_size = T, c.n_layer = 2;
  return c;
}

TEST(Probe, EveryCausalModelPasses) {
  Threads one(1);
  for (Position pos : {Position::none, Position::learned, Position::sinusoidal, Position::rotary, Position::alibi}) {
    for (NormPlace norm : {NormPlace::pre, NormPlace::post, NormPlace::none, NormPlace::parallel}) {
      for (Mixer mixer : {Mixer::attention, Mixer::average, Mixer::none}) {
        for (int64_t window : {0, 7}) {
          ModelConfig c = probed();
          c.pos = pos, c.norm = norm, c.mixer = mixer, c.n_kv_head = window ? 1 : 0,
          c.norm_kind = window ? NormKind::rms : NormKind::layer;
          if (window) c.mask = Mask::window, c.window = window;
          EXPECT_TRUE(probe_causality(LanguageModel(c, 3), 42).causal);
        }
      }
    }
  }
}

TEST(Probe, ShortAndLongWindowsToo) {
  for (int64_t T : {1, 2, 3, 300}) EXPECT_TRUE(probe_causality(LanguageModel(probed(T), 3), 42).causal) << T;
}

TEST(Probe, AModelThatSeesTheFutureFails) {
  for (Position pos : {Position::none, Position::learned, Position::sinusoidal, Position::rotary}) {
    ModelConfig c = probed();
    c.mask = Mask::full, c.pos = pos;
    const CausalityReport r = probe_causality(LanguageModel(c, 3), 42);
    EXPECT_FALSE(r.causal);
    EXPECT_EQ(r.changed, 1);
    EXPECT_EQ(r.moved, 0);
  }
}

TEST(Probe, ChangesNothingInTheModel) {
  LanguageModel model(probed(), 3);
  const std::vector<float> before = values(model);
  probe_causality(model, 42);
  EXPECT_EQ(values(model), before);
}

}  // namespace
}  // namespace bary
