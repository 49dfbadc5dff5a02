// SPDX-License-Identifier: Apache-2.0
#include "bary/model/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bary {
namespace {

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

// Refused, and the message holds every one of `parts`.
void expect_refused(const std::function<void(ModelConfig&)>& change, const std::vector<std::string>& parts) {
  ModelConfig c;
  change(c);
  const std::string message = refusal([&] { c.check(); });
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST(ModelConfig, DefaultsAreTheChaptersBlock) {
  ModelConfig c;
  EXPECT_NO_THROW(c.check());
  EXPECT_EQ(c.head_width(), 32);
  EXPECT_EQ(c.heads_kv(), 4);
  EXPECT_EQ(c.positions(), 128);
  EXPECT_EQ(c.mlp_width(), 512);
  EXPECT_TRUE(c.final_norm());
  EXPECT_TRUE(c.causal());
}

TEST(ModelConfig, RefusesWidthsThatDoNotDivide) {
  expect_refused([](auto& c) { c.n_embd = 130; }, {"n_embd 130", "n_head 4", "d_head"});
  expect_refused([](auto& c) { c.n_kv_head = 3; }, {"n_head 4", "n_kv_head 3"});
  expect_refused([](auto& c) { c.n_kv_head = 8; }, {"n_head 4", "n_kv_head 8"});
  expect_refused([](auto& c) { c.attn_proj = false, c.d_head = 16; }, {"4 x 16", "128"});
  ModelConfig c;
  c.n_embd = 130, c.d_head = 32;  // given the width of a head, nothing has to divide
  EXPECT_NO_THROW(c.check());
}

TEST(ModelConfig, RefusesOddRotaryHeads) {
  expect_refused([](auto& c) { c.pos = Position::rotary, c.d_head = 7; }, {"even", "7"});
  expect_refused([](auto& c) { c.pos = Position::rotary, c.n_head = 128; }, {"even", "1"});
  ModelConfig c;
  c.pos = Position::alibi, c.d_head = 7;
  EXPECT_NO_THROW(c.check());
}

TEST(ModelConfig, RefusesScalingsOfPositionsThatAreNotThere) {
  auto rotary = [](ModelConfig& c, RopeScaling s) { c.pos = Position::rotary, c.rope_scaling = s, c.rope_factor = 4; };
  expect_refused([](auto& c) { c.rope_scaling = RopeScaling::linear; }, {"pos=rotary"});
  expect_refused([](auto& c) { c.pos = Position::rotary, c.rope_factor = 4; }, {"rope_factor 4", "rope_scaling"});
  expect_refused([&](auto& c) { rotary(c, RopeScaling::linear), c.rope_factor = 0.5; }, {"0.5", "1 or more"});
  expect_refused([&](auto& c) { rotary(c, RopeScaling::ntk), c.d_head = 2; }, {"ntk", "2", "linear"});
  expect_refused([&](auto& c) { rotary(c, RopeScaling::yarn), c.rope_theta = 1; }, {"yarn", "theta 1"});
  expect_refused([](auto& c) { c.rope_original = -1; }, {"rope_original is -1"});
  for (RopeScaling s : {RopeScaling::linear, RopeScaling::ntk, RopeScaling::yarn}) {
    ModelConfig c;
    rotary(c, s);
    EXPECT_NO_THROW(c.check());
    EXPECT_EQ(c.rotary().original, 128);
    c.rope_original = 32;
    EXPECT_EQ(c.rotary().original, 32);
  }
}

TEST(ModelConfig, RefusesSizesBelowOne) {
  expect_refused([](auto& c) { c.n_head = 0; }, {"n_head is 0"});
  expect_refused([](auto& c) { c.n_embd = 0; }, {"n_embd is 0"});
  expect_refused([](auto& c) { c.vocab_size = 0; }, {"vocab_size is 0"});
  expect_refused([](auto& c) { c.block_size = -1; }, {"block_size is -1"});
  expect_refused([](auto& c) { c.mlp_ratio = 0; }, {"mlp_ratio is 0"});
  expect_refused([](auto& c) { c.n_layer = -1; }, {"n_layer -1"});
  expect_refused([](auto& c) { c.n_kv_head = -4; }, {"n_kv_head -4"});
}

TEST(ModelConfig, RefusesWhatHasNoMeaning) {
  expect_refused([](auto& c) { c.mask = Mask::window; }, {"window", "0"});
  expect_refused([](auto& c) { c.context = 64; }, {"context 64", "block_size 128"});
}

TEST(ModelConfig, RefusesWhatCouldNotBeAddressed) {
  expect_refused([](auto& c) { c.vocab_size = int64_t{1} << 40; }, {"10^12"});
  expect_refused([](auto& c) { c.context = int64_t{1} << 40; }, {"10^12"});
  expect_refused([](auto& c) { c.n_embd = int64_t{1} << 30, c.n_head = 1; }, {"10^12"});
  expect_refused([](auto& c) { c.n_layer = int64_t{1} << 30; }, {"10^12"});
}

ModelConfig far_from_default() {
  ModelConfig c;
  c.vocab_size = 300, c.block_size = 7, c.context = 9, c.n_layer = 3, c.n_head = 6, c.n_kv_head = 2, c.n_embd = 30,
  c.d_head = 8;
  c.mlp_ratio = 2, c.mixer = Mixer::average, c.mlp = MlpKind::swiglu, c.norm = NormPlace::parallel,
  c.norm_kind = NormKind::rms;
  c.pos = Position::rotary, c.mask = Mask::window, c.window = 3, c.scale = false, c.residual = false, c.qkv_bias = true;
  c.attn_proj = false, c.bias = false, c.head_bias = false, c.tie_embeddings = true, c.dropout = 0.25,
  c.rope_theta = 500, c.rope_scaling = RopeScaling::yarn, c.rope_factor = 4, c.rope_original = 5;
  c.norm_eps = 1e-6, c.init = InitStyle::gpt2;
  c.arch = Arch::lstm, c.source_vocab_size = 300, c.n_encoder_layer = 3, c.share_embeddings = c.embed_scale = true;
  c.attend = Attend::additive;
  return c;
}

TEST(ModelConfig, GoesThroughJsonUnchanged) {
  for (const ModelConfig& c : {ModelConfig{}, far_from_default()}) {
    const nlohmann::json j = to_json(c);
    EXPECT_EQ(to_json(model_config_from_json(nlohmann::json::parse(j.dump()), "config.json")), j);
    EXPECT_EQ(j["model_type"], "bary");
    EXPECT_EQ(j["n_positions"], c.positions());
  }
  const ModelConfig c = model_config_from_json(to_json(far_from_default()), "config.json");
  EXPECT_EQ(c.n_kv_head, 2);
  EXPECT_EQ(c.norm, NormPlace::parallel);
  EXPECT_EQ(c.dropout, 0.25);
  EXPECT_EQ(c.init, InitStyle::gpt2);
  EXPECT_FALSE(c.residual);
}

TEST(ModelConfig, ReadsFilesOfEarlierVersions) {
  nlohmann::json j = to_json(ModelConfig{});
  const nlohmann::json whole = j;
  for (const char* key : {"rope_scaling", "rope_factor", "rope_original", "arch", "source_vocab_size",
                          "n_encoder_layer", "share_embeddings", "embed_scale", "attend"})
    EXPECT_EQ(j.erase(key), 1u) << key;
  EXPECT_EQ(to_json(model_config_from_json(j, "config.json")), whole);
}

TEST(Reading, ChangesTheWindowAndThePace) {
  ModelConfig c;
  c.pos = Position::rotary;
  EXPECT_EQ(to_json(read_as(c, {})), to_json(c));
  const ModelConfig longer = read_as(c, {512, RopeScaling::yarn, 4});
  EXPECT_EQ(longer.block_size, 512);
  EXPECT_EQ(longer.positions(), 512);
  EXPECT_EQ(longer.rotary().original, 128) << "the window trained at, not the one read";
  EXPECT_EQ(read_as(longer, {1024}).rotary().factor, 4) << "none: as the model has it";
  EXPECT_EQ(read_as(longer, {1024}).rotary().original, 128);
  EXPECT_EQ(read_as(c, {32}).block_size, 32);
  ModelConfig table;
  table.context = 256;
  EXPECT_EQ(read_as(table, {200}).positions(), 256) << "the table keeps its size";
  EXPECT_EQ(read_as(table, {32}).positions(), 256);
  auto refused = [](const ModelConfig& m, const Reading& r, const std::string& part) {
    EXPECT_NE(refusal([&] { read_as(m, r); }).find(part), std::string::npos) << part;
  };
  refused(table, {257}, "learned 256 positions");
  refused(table, {0, RopeScaling::ntk, 2}, "pos=rotary");
  refused(c, {0, RopeScaling::none, 2}, "rope_factor 2");
}

bool is_idle(const ModelConfig& c, const std::string& name) {
  for (const Idle& idle : idle_options(c))
    if (std::find(idle.names.begin(), idle.names.end(), name) != idle.names.end()) return true;
  return false;
}

TEST(IdleOptions, AreThoseThatWouldDoNothing) {
  struct Question {
    std::function<void(ModelConfig&)> change;
    std::vector<std::string> idle, used;
  };
  const std::vector<std::string> rope{"rope_theta", "rope_scaling", "rope_factor", "rope_original"};
  const std::vector<std::string> source{"n_encoder_layer", "share_embeddings", "attend"};
  const std::vector<Question> questions{
      {[](auto&) {}, rope, {"embed_scale", "head_bias", "mask", "n_head", "mlp_ratio"}},
      {[](auto&) {}, source, {}},
      {[](auto& c) { c.pos = Position::rotary; }, {"window"}, rope},
      {[](auto& c) { c.tie_embeddings = true; }, {"head_bias"}, {"tie_embeddings"}},
      {[](auto& c) { c.tie_embeddings = true, c.head_bias = false; }, {}, {"head_bias"}},
      {[](auto& c) { c.arch = Arch::encoder; }, {"mask"}, {"embed_scale"}},
      {[](auto& c) { c.arch = Arch::encoder, c.mask = Mask::window, c.window = 3; }, {"mask", "window"}, {}},
      {[](auto& c) { c.arch = Arch::encoder, c.mask = Mask::full; }, source, {"mask"}},
      {[](auto& c) { c.arch = Arch::encoder_decoder, c.source_vocab_size = 11; },
       {"attend"},
       {"n_encoder_layer", "share_embeddings", "embed_scale", "mask"}},
      {[](auto& c) { c.arch = Arch::encoder_decoder; },
       {"attend"},
       {"n_encoder_layer"}},  // its source is still to come
      {[](auto& c) { c.arch = Arch::lstm, c.source_vocab_size = 11; }, {"embed_scale", "bias", "pos"}, source},
      {[](auto& c) { c.arch = Arch::gru; }, source, {"head_bias", "tie_embeddings", "n_layer", "init"}},
      {[](auto& c) { c.arch = Arch::gru, c.pos = Position::rotary; }, rope, {}},
  };
  for (size_t i = 0; i < questions.size(); ++i) {
    ModelConfig c;
    c.rope_scaling = RopeScaling::ntk, c.rope_factor = 2, c.rope_original = 64;
    c.n_encoder_layer = 3, c.share_embeddings = true, c.attend = Attend::dot, c.embed_scale = true;
    questions[i].change(c);
    for (const std::string& name : questions[i].idle) EXPECT_TRUE(is_idle(c, name)) << i << " " << name;
    for (const std::string& name : questions[i].used) EXPECT_FALSE(is_idle(c, name)) << i << " " << name;
  }
}

TEST(IdleOptions, AValueThatSaysWhatIsSoAnywayIsNoMistake) {
  for (Arch arch : {Arch::decoder, Arch::encoder, Arch::rnn, Arch::lstm, Arch::gru}) {
    ModelConfig c;
    c.arch = arch, c.tie_embeddings = true, c.head_bias = false, c.mask = Mask::full;
    for (const char* name : {"n_encoder_layer", "share_embeddings", "attend", "rope_scaling", "rope_factor",
                             "rope_original", "embed_scale", "head_bias"})
      EXPECT_FALSE(is_idle(c, name)) << name;
  }
}

TEST(IdleOptions, AreOptionsOfAModel) {  // a name nobody knows would stop the command that asks for it
  ModelConfig any;
  Options o("config");
  any.describe(o);
  const std::vector<std::string> known = o.names();
  for (Arch arch : {Arch::decoder, Arch::encoder, Arch::encoder_decoder, Arch::rnn, Arch::lstm, Arch::gru})
    for (bool bare : {false, true}) {
      ModelConfig c;
      c.arch = arch;
      if (bare) c.mixer = Mixer::none, c.mlp = MlpKind::none, c.norm = NormPlace::none, c.tie_embeddings = true;
      for (const Idle& idle : idle_options(c))
        for (std::string_view name : idle.names)
          EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;
    }
}

TEST(ModelConfig, EveryKeyOfTheFileMatters) {  // the two configurations differ in all of them
  const nlohmann::json a = to_json(ModelConfig{}), b = to_json(far_from_default());
  ModelConfig c;
  Options o("config");
  c.describe(o);
  for (const std::string& name : o.names()) EXPECT_NE(a[name], b[name]) << name;
}

TEST(ModelConfig, RefusesFilesOfOthersAndIncompleteOnes) {
  nlohmann::json j = to_json(ModelConfig{});
  auto message = [&] { return refusal([&] { model_config_from_json(j, "here/config.json"); }); };
  j["model_type"] = "gpt2";
  EXPECT_NE(message().find("here/config.json"), std::string::npos);
  j = nlohmann::json::array();
  EXPECT_NE(message().find("model_type"), std::string::npos);
  j = to_json(ModelConfig{});
  j.erase("n_layer");
  EXPECT_NE(message().find("n_layer"), std::string::npos);
  j = to_json(ModelConfig{});
  for (const nlohmann::json& wrong : {nlohmann::json("many"), nlohmann::json(1.5), nlohmann::json(-1),
                                      nlohmann::json(nullptr), nlohmann::json(1e30), nlohmann::json::array()}) {
    j["n_layer"] = wrong;
    EXPECT_NE(message().find("n_layer"), std::string::npos) << wrong;
  }
  j = to_json(ModelConfig{});
  j["n_head"] = 3;  // each value alone is fine
  EXPECT_NE(message().find("n_head 3"), std::string::npos);
  j = to_json(ModelConfig{});
  j["something_new"] = 1;  // other tools add keys
  EXPECT_NO_THROW(model_config_from_json(j, "config.json"));
}

TEST(Presets, AreAllBuildable) {
  for (const std::string& name : preset_names()) EXPECT_NO_THROW(preset(name).check()) << name;
}

TEST(Presets, AnUnknownNameComesWithTheNearest) {
  const std::string message = refusal([] { preset("gpt2-mediun"); });
  EXPECT_NE(message.find("did you mean gpt2-medium?"), std::string::npos) << message;
  EXPECT_NE(refusal([] { preset(""); }).find("known are"), std::string::npos);
}

TEST(ModelConfig, TablesOfRotaryAnglesAreAsWideAsAHead) {
  ModelConfig c;
  c.pos = Position::rotary, c.n_embd = 2, c.n_head = 1, c.d_head = 16, c.block_size = 8;
  EXPECT_NO_THROW(c.check());
  c.context = int64_t{1} << 27;
  EXPECT_THROW(c.check(), Error);
  c.context = int64_t{1} << 24;
  EXPECT_NO_THROW(c.check());
}

}  // namespace
}  // namespace bary
