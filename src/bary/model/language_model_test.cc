// SPDX-License-Identifier: Apache-2.0
#include "bary/model/language_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "bary/tensor/tap.h"

namespace bary {
namespace {

std::vector<int32_t> random_ids(int64_t n, int64_t V, uint64_t seed = 1) {
  RandomStream random(seed, Purpose::test);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  return ids;
}

ModelConfig small() {
  ModelConfig c;
  c.vocab_size = 37, c.block_size = 12, c.n_embd = 16, c.n_layer = 2;
  return c;
}

// Which outputs move, by a bit, when token j changes.
std::set<int64_t> moved_by(const LanguageModel& model, int64_t T, int64_t j) {
  std::vector<int32_t> ids = random_ids(T, 37), other = ids;
  other[static_cast<size_t>(j)] = (other[static_cast<size_t>(j)] + 1) % 37;
  Tensor a = model.hidden(ids, 1), b = model.hidden(other, 1);
  std::set<int64_t> moved;
  for (int64_t t = 0; t < T; ++t)
    if (std::memcmp(a.row(t), b.row(t), static_cast<size_t>(a.channels()) * 4) != 0) moved.insert(t);
  return moved;
}
std::set<int64_t> range(int64_t from, int64_t to) {
  std::set<int64_t> s;
  for (int64_t t = from; t < to; ++t) s.insert(t);
  return s;
}

// Attention is the only operation that mixes positions: without it a stack of blocks is networks side by side.
TEST(Dependence, WithoutAMixerNoOutputDependsOnAnotherToken) {
  for (NormPlace norm : {NormPlace::pre, NormPlace::post, NormPlace::none, NormPlace::parallel}) {
    for (MlpKind mlp : {MlpKind::gelu, MlpKind::swiglu}) {
      ModelConfig c = small();
      c.mixer = Mixer::none, c.norm = norm, c.mlp = mlp, c.n_layer = 3;
      LanguageModel model(c, 2);
      for (int64_t j = 0; j < 12; ++j) EXPECT_EQ(moved_by(model, 12, j), range(j, j + 1));
    }
  }
}

TEST(Dependence, ACausalOutputSeesItsPrefixItselfIncluded) {
  for (Mixer mixer : {Mixer::attention, Mixer::average}) {
    ModelConfig c = small();
    c.mixer = mixer;
    LanguageModel model(c, 2);
    for (int64_t j = 0; j < 12; ++j) EXPECT_EQ(moved_by(model, 12, j), range(j, 12)) << j;
  }
}

TEST(Dependence, AWindowReachesAsFarAsItsLayers) {
  ModelConfig c = small();
  c.mask = Mask::window, c.window = 3;
  for (int64_t layers : {1, 2, 3}) {
    c.n_layer = layers;
    LanguageModel model(c, 2);
    for (int64_t j = 0; j < 12; ++j)
      EXPECT_EQ(moved_by(model, 12, j), range(j, std::min<int64_t>(12, j + 1 + 2 * layers))) << j;
  }
}

TEST(Dependence, WithoutAMaskEveryOutputSeesEveryToken) {
  ModelConfig c = small();
  c.mask = Mask::full;
  LanguageModel model(c, 2);
  for (int64_t j = 0; j < 12; ++j) EXPECT_EQ(moved_by(model, 12, j), range(0, 12)) << j;
}

// No parameter depends on the length of the text: the same weights run at every length.
TEST(LanguageModel, TheSameWeightsRunAtEveryLength) {
  for (Position pos : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi, Position::learned}) {
    ModelConfig c = small();
    c.pos = pos;
    if (pos == Position::learned) c.context = 600;
    LanguageModel model(c, 2);
    EXPECT_EQ(model.parameters().find("transformer.wpe.weight") != nullptr, pos == Position::learned);
    const int64_t before = model.parameters().count();
    model.ensure_positions(600);
    for (int64_t T : {1, 12, 13, 600}) {
      Tensor y = model.logits(random_ids(T, 37), 1);
      EXPECT_EQ(y.shape(), (Shape{1, T, 37}));
      for (float v : y.to_vector()) ASSERT_TRUE(std::isfinite(v));
    }
    EXPECT_EQ(model.parameters().count(), before);
  }
}

// The same weights under another pace of their rotary positions, read past their window
TEST(LanguageModel, RotaryScalingIsASetting) {
  ModelConfig c = small();
  c.pos = Position::rotary;
  LanguageModel plain(c, 2);
  const std::vector<int32_t> ids = random_ids(12, 37), longer = random_ids(40, 37);
  plain.ensure_positions(40);
  for (RopeScaling s : {RopeScaling::linear, RopeScaling::ntk, RopeScaling::yarn}) {
    ModelConfig scaled = c;
    scaled.rope_scaling = s, scaled.rope_factor = 4;
    LanguageModel model(scaled, 3);
    EXPECT_TRUE(copy_parameters(plain.parameters(), model.parameters()).empty());
    EXPECT_NE(model.logits(ids, 1).to_vector(), plain.logits(ids, 1).to_vector());
    EXPECT_THROW(model.logits(longer, 1), Error);
    model.ensure_positions(40);
    EXPECT_NE(model.logits(longer, 1).to_vector(), plain.logits(longer, 1).to_vector());
  }
  ModelConfig same = c;
  same.rope_scaling = RopeScaling::linear;
  LanguageModel model(same, 2);
  EXPECT_EQ(model.logits(ids, 1).to_vector(), plain.logits(ids, 1).to_vector());
}

TEST(LanguageModel, ContextMakesTheTableLongerThanTheWindow) {
  ModelConfig c = small();
  c.context = 20;
  LanguageModel model(c, 2);
  EXPECT_EQ(model.parameters().find("transformer.wpe.weight")->shape, (Shape{20, 16}));
  EXPECT_NO_THROW(model.logits(random_ids(20, 37), 1));
  EXPECT_THROW(model.logits(random_ids(21, 37), 1), Error);
  EXPECT_THROW(model.ensure_positions(21), Error);
  EXPECT_NO_THROW(model.ensure_positions(20));
}

TEST(LanguageModel, LongerTablesKeepTheirBeginning) {
  for (Position pos : {Position::sinusoidal, Position::rotary}) {
    ModelConfig c = small();
    c.pos = pos;
    LanguageModel model(c, 2);
    const std::vector<int32_t> ids = random_ids(12, 37);
    const std::vector<float> before = model.logits(ids, 1).to_vector();
    model.ensure_positions(1000);
    EXPECT_EQ(model.logits(ids, 1).to_vector(), before);
  }
}

TEST(LanguageModel, MistakesAreNamed) {
  LanguageModel model(small(), 2);
  auto message = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_NE(message([&] {
              model.logits(std::vector<int32_t>{1, 37}, 1);
            }).find("token id 37 at position 1"),
            std::string::npos);
  EXPECT_NE(message([&] { model.logits(std::vector<int32_t>{-1}, 1); }).find("token id -1"), std::string::npos);
  EXPECT_NE(message([&] { model.loss(std::vector<int32_t>{1}, std::vector<int32_t>{37}, 1); }).find("target 37"),
            std::string::npos);
  EXPECT_NE(message([&] { model.loss(std::vector<int32_t>{1}, std::vector<int32_t>{1, 2}, 1); }), "accepted");
  EXPECT_NE(message([&] { model.logits(random_ids(13, 37), 1); }).find("the table ends at 11"), std::string::npos);
  EXPECT_NE(message([&] { model.logits(random_ids(5, 37), 2); }), "accepted") << "5 ids are not 2 sequences";
  KvCache cache = model.make_cache(1, 4);
  Pass pass;
  pass.cache = &cache;
  EXPECT_NE(message([&] { model.logits(random_ids(5, 37), 1, pass); }).find("room is 4"), std::string::npos);
  EXPECT_EQ(cache.length, 0);
  EXPECT_NO_THROW(model.logits(random_ids(4, 37), 1, pass)) << "a refused call leaves the cache as it was";
}

TEST(LanguageModel, LossIsMinusLogOfTheSoftmaxOfItsLogits) {
  ModelConfig c = small();
  LanguageModel model(c, 2);
  const std::vector<int32_t> ids = random_ids(24, 37);
  std::vector<int32_t> targets = random_ids(24, 37, 2);
  targets[3] = targets[20] = -1;
  const LossSum loss = model.loss(ids, targets, 2);
  const std::vector<float> logits = model.logits(ids, 2).to_vector();
  double want = 0;
  for (size_t r = 0; r < 24; ++r) {
    if (targets[r] < 0) continue;
    double sum = 0;
    for (size_t v = 0; v < 37; ++v) sum += std::exp(static_cast<double>(logits[r * 37 + v]));
    want += std::log(sum) - static_cast<double>(logits[r * 37 + static_cast<size_t>(targets[r])]);
  }
  EXPECT_EQ(loss.count, 22);
  EXPECT_NEAR(loss.sum, want, 22 * 4 * 0x1p-24 * std::sqrt(37.0));
}

TEST(LanguageModel, TapsSeeTheResidualStream) {
  LanguageModel model(small(), 2);
  std::vector<std::string> seen;
  Probe probe;
  for (const char* name :
       {"hook_embed", "blocks.0.hook_resid_pre", "blocks.0.attn.hook_pattern", "blocks.0.hook_resid_mid",
        "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post"})
    probe.look(name, [&seen, name](const Tensor&) { seen.push_back(name); });
  std::vector<float> post, pre;
  probe.look("blocks.0.hook_resid_post", [&](const Tensor& x) { post = x.to_vector(); });
  probe.look("blocks.1.hook_resid_pre", [&](const Tensor& x) { pre = x.to_vector(); });
  model.logits(random_ids(12, 37), 1);
  EXPECT_EQ(seen, (std::vector<std::string>{"hook_embed", "blocks.0.hook_resid_pre", "blocks.0.attn.hook_pattern",
                                            "blocks.0.hook_resid_mid", "blocks.1.hook_resid_post"}));
  EXPECT_EQ(post, pre);
}

TEST(LanguageModel, CopyTakesWhatFitsAndNamesTheRest) {
  ModelConfig c = small();
  LanguageModel from(c, 2);
  c.n_layer = 3, c.context = 20;
  LanguageModel to(c, 3);
  const std::vector<std::string> left = copy_parameters(from.parameters(), to.parameters());
  EXPECT_EQ(left[0], "transformer.wpe.weight");
  for (size_t i = 1; i < left.size(); ++i) EXPECT_EQ(left[i].rfind("transformer.h.2.", 0), 0u) << left[i];
  LanguageModel same(small(), 9);
  EXPECT_TRUE(copy_parameters(from.parameters(), same.parameters()).empty());
  const std::vector<int32_t> ids = random_ids(12, 37);
  EXPECT_EQ(same.logits(ids, 1).to_vector(), from.logits(ids, 1).to_vector()) << "packed copies are made again";
}

TEST(LanguageModel, ParametersHaveHuggingFacesNames) {
  LanguageModel model(small(), 2);
  for (const char* name :
       {"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
        "transformer.h.1.attn.q_proj.weight", "transformer.h.1.attn.out_proj.bias", "transformer.h.0.ln_2.bias",
        "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_proj.bias", "transformer.ln_f.weight",
        "lm_head.weight", "lm_head.bias"})
    EXPECT_NE(model.parameters().find(name), nullptr) << name;
}

TEST(LanguageModel, ThreadsMayShareIt) {  // one asks for longer tables while the others read
  for (Position pos : {Position::sinusoidal, Position::rotary}) {
    ModelConfig c = small();
    c.pos = pos;
    LanguageModel model(c, 2);
    const std::vector<int32_t> ids = random_ids(12, 37);
    const std::vector<float> alone = model.logits(ids, 1).to_vector();
    std::atomic<int> wrong{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
      readers.emplace_back([&, i] {
        for (int n = 0; n < 40; ++n) {
          if (i == 0) model.ensure_positions(20 + 7 * n);
          wrong += model.logits(ids, 1).to_vector() != alone;
        }
      });
    for (std::thread& r : readers) r.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(LanguageModel, ACacheOfAnotherModelIsRefused) {
  ModelConfig c = small();
  const LanguageModel two(c, 2);
  c.n_layer = 1;
  const LanguageModel one(c, 2);
  KvCache cache = one.make_cache(1, 12), made_up;
  made_up.capacity = 12;
  Pass pass;
  for (KvCache* wrong : {&cache, &made_up}) {
    pass.cache = wrong;
    EXPECT_THROW(two.hidden(random_ids(3, 37), 1, pass), Error);
  }
  EXPECT_THROW(two.make_cache(1, INT64_MAX), Error);
}

TEST(LanguageModel, APrefixIsRefusedWhereNothingShowsIt) {
  const std::vector<int32_t> ids = random_ids(6, 37);
  const std::vector<int64_t> prefix{3};
  Pass pass;
  pass.prefix = prefix;
  EXPECT_NO_THROW(LanguageModel(small(), 1).logits(ids, 1, pass));
  for (int i = 0; i < 3; ++i) {
    ModelConfig c = small();
    if (i == 0) c.mask = Mask::window, c.window = 4;
    if (i == 1) c.mixer = Mixer::average;
    if (i == 2) c.mixer = Mixer::none;
    EXPECT_THROW(LanguageModel(c, 1).logits(ids, 1, pass), Error) << i;
  }
}

}  // namespace
}  // namespace bary
