// SPDX-License-Identifier: Apache-2.0
#include "bary/model/count.h"

#include <gtest/gtest.h>

#include "bary/model/language_model.h"
#include "bary/model/seq2seq.h"

namespace bary {
namespace {

int64_t part(const ParameterCount& c, const std::string& name) {
  for (const CountRow& r : c.rows)
    if (r.part == name) return r.count;
  return 0;
}

TEST(Count, Gpt2IsTheTextsArithmetic) {
  const ParameterCount c = count_parameters(preset("gpt2"));
  EXPECT_EQ(part(c, "token embedding"), 38597376);
  EXPECT_EQ(part(c, "position embedding"), 786432);
  EXPECT_EQ(c.block, 7087872);
  EXPECT_EQ(c.block * 12, 85054464);
  EXPECT_EQ(part(c, "final normalisation"), 1536);
  EXPECT_EQ(part(c, "head"), 0) << "tied: counted once";
  EXPECT_EQ(c.total, 124439808);
  EXPECT_EQ(c.total, 38597376 + 786432 + 12 * 7087872 + 1536);
  EXPECT_EQ(c.embeddings, 38597376 + 786432);
}

TEST(Count, TheGpt2Family) {  // Radford et al. 2019, counted with the tied table once
  EXPECT_EQ(count_parameters(preset("gpt2-medium")).total, 354823168);
  EXPECT_EQ(count_parameters(preset("gpt2-large")).total, 774030080);
  EXPECT_EQ(count_parameters(preset("gpt2-xl")).total, 1557611200);
}

TEST(Count, ABlockIsTwelveSquares) {  // 12 d^2 + 13 d with biases; attention 4 d^2 + 4 d, MLP 8 d^2 + 5 d, norms 4 d
  for (int64_t d : {8, 128, 768}) {
    ModelConfig c;
    c.n_embd = d, c.n_head = 4, c.qkv_bias = true;
    const ParameterCount n = count_parameters(c);
    EXPECT_EQ(n.block, 12 * d * d + 13 * d);
    EXPECT_EQ(part(n, "attention: queries, keys, values") + part(n, "attention: output matrix"), 4 * d * d + 4 * d);
    EXPECT_EQ(part(n, "MLP"), 8 * d * d + 5 * d);
    EXPECT_EQ(part(n, "normalisation"), 4 * d);
    c.qkv_bias = false;
    EXPECT_EQ(n.block - count_parameters(c).block, 3 * d);  // 2,304 at d = 768
  }
}

TEST(Count, TheLadder) {
  auto total = [](const char* name) { return count_parameters(preset(name)).total; };
  EXPECT_EQ(total("block"), 477696);
  EXPECT_EQ(total("chapter"), 477696);
  EXPECT_EQ(total("heads") - total("head"), 16512) << "the output matrix: 128 x 128 + 128";
  EXPECT_EQ(total("block") - total("heads-mlp"), 768) << "three LayerNorms";
  EXPECT_EQ(total("head") - total("average-positions"), 3 * 128 * 128);
  EXPECT_EQ(total("average-positions") - total("average"), 128 * 128);
  EXPECT_EQ(total("average"), total("token")) << "an average has no parameters";
  EXPECT_EQ(total("average-added"), total("average"));
  EXPECT_EQ(total("head-replacing"), total("head"));
}

TEST(Count, HeadsDoNotMatterForTheNumber) {
  for (int64_t h : {1, 2, 8, 128}) {
    ModelConfig c;
    c.n_head = h;
    EXPECT_EQ(count_parameters(c).total, 477696) << h;
  }
}

TEST(Count, IsWhatAModelHas) {
  for (const std::string& name : preset_names()) {
    ModelConfig c = preset(name);
    const bool large = name.rfind("gpt2", 0) == 0;  // the same shape, smaller in every direction
    if (large) c.n_embd = c.n_head * 4, c.vocab_size = 97, c.block_size = 11, c.n_layer = 3;
    const int64_t has =
        c.has_source() ? make_seq2seq(c, 0)->parameters().count() : LanguageModel(c, 0).parameters().count();
    EXPECT_EQ(count_parameters(c).total, has) << name;
  }
}

TEST(Count, IsWhatADecoderHasForEverySetting) {
  ModelConfig base;
  base.vocab_size = 31, base.block_size = 9, base.n_embd = 12, base.n_layer = 2;
  std::vector<std::function<void(ModelConfig&)>> changes{
      [](auto& c) { c.n_layer = 0; },
      [](auto& c) { c.context = 20; },
      [](auto& c) { c.n_kv_head = 2, c.qkv_bias = true; },
      [](auto& c) { c.d_head = 5, c.pos = Position::none; },
      [](auto& c) { c.attn_proj = false; },
      [](auto& c) { c.bias = false; },
      [](auto& c) { c.bias = false, c.mlp = MlpKind::swiglu; },
      [](auto& c) { c.mlp = MlpKind::swiglu, c.norm_kind = NormKind::rms; },
      [](auto& c) { c.mlp = MlpKind::none, c.mlp_ratio = 3; },
      [](auto& c) { c.mixer = Mixer::average; },
      [](auto& c) { c.mixer = Mixer::none; },
      [](auto& c) { c.mixer = Mixer::none, c.mlp = MlpKind::none; },
      [](auto& c) { c.mixer = Mixer::none, c.norm = NormPlace::parallel; },
      [](auto& c) { c.tie_embeddings = true; },
      [](auto& c) { c.head_bias = false; }};
  for (NormPlace norm : {NormPlace::pre, NormPlace::post, NormPlace::none, NormPlace::parallel}) {
    for (size_t i = 0; i < changes.size(); ++i) {
      ModelConfig c = base;
      c.norm = norm;
      changes[i](c);
      c.norm = norm;
      const ParameterCount n = count_parameters(c);
      EXPECT_EQ(n.total, LanguageModel(c, 0).parameters().count()) << i << " norm " << static_cast<int>(norm);
      int64_t rows = 0;
      for (const CountRow& r : n.rows) rows += r.count * r.times;
      EXPECT_EQ(rows, n.total);
    }
  }
}

TEST(Count, FlopsAreTwoAMultiplyAdd) {
  ModelConfig c;
  c.n_layer = 0, c.vocab_size = 10, c.n_embd = 4, c.n_head = 1;
  EXPECT_EQ(count_flops(c, 3).forward, 2 * 3 * 10 * 4);
  EXPECT_EQ(count_flops(c, 3).training, 3 * 2 * 3 * 10 * 4);
  c.n_layer = 2, c.mlp = MlpKind::none;  // causal, T 3: 1 + 2 + 3 keys, for q k and for p v
  EXPECT_EQ(count_flops(c, 3).forward, 2 * (3 * (2 * 4 * 16 + 40) + 2 * 2 * 6 * 4));
  c.mask = Mask::full;
  EXPECT_EQ(count_flops(c, 3).forward, 2 * (3 * (2 * 4 * 16 + 40) + 2 * 2 * 9 * 4));
  c.mask = Mask::window, c.window = 1;
  EXPECT_EQ(count_flops(c, 3).forward, 2 * (3 * (2 * 4 * 16 + 40) + 2 * 2 * 3 * 4));
}

TEST(Count, MemoryGrowsWithWhatItIsMadeOf) {
  const ModelConfig c = preset("block");
  const MemoryForecast one = forecast_memory(c, 1, 16), four = forecast_memory(c, 4, 16);
  EXPECT_EQ(one.weights, 477696.0 * 4);
  EXPECT_EQ(one.optimizer, 477696.0 * 8);
  EXPECT_EQ(four.activations, 4 * one.activations);
  EXPECT_EQ(four.weights, one.weights);
  EXPECT_GT(one.total(), 0);
  EXPECT_LT(forecast_memory(c, 2, 16).total(), 400e6);
}

}  // namespace
}  // namespace bary
