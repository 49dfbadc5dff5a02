// SPDX-License-Identifier: Apache-2.0
#include "bary/model/count.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>

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

// The value of "3 (2 C^2 + 2 C)" or "(H + 2 G) D": sums of products of numbers, letters and brackets
class Formula {
 public:
  Formula(const std::string& text, const ModelConfig& c) : text_(text), c_(c) {}
  int64_t value() {
    const int64_t v = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return v;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char sign) {
    skip();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    return ++at_, true;
  }
  int64_t sum() {
    int64_t v = product();
    while (take('+')) v += product();
    return v;
  }
  int64_t product() {
    int64_t v = factor();
    for (skip(); at_ < text_.size() && text_[at_] != '+' && text_[at_] != ')'; skip()) v *= factor();
    return v;
  }
  int64_t factor() {
    int64_t v = 0;
    skip();
    if (take('(')) {
      v = sum();
      EXPECT_TRUE(take(')')) << text_;
    } else if (std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
        v = 10 * v + text_[at_++] - '0';
    } else {
      v = letter(text_[at_++]);
    }
    if (!take('^')) return v;
    EXPECT_TRUE(take('2')) << text_;
    return v * v;
  }
  int64_t letter(char name) const {
    const std::map<char, int64_t> values{{'C', c_.n_embd},      {'V', c_.vocab_size},  {'S', c_.source_vocab_size},
                                         {'P', c_.positions()}, {'F', c_.mlp_width()}, {'H', c_.n_head},
                                         {'G', c_.heads_kv()},  {'D', c_.head_width()}};
    const auto found = values.find(name);
    EXPECT_NE(found, values.end()) << name << " in " << text_;
    return found == values.end() ? 0 : found->second;
  }

  std::string text_;
  const ModelConfig& c_;
  size_t at_ = 0;
};

std::string formula(const ModelConfig& c, const std::string& name) {
  for (const CountRow& r : count_parameters(c).rows)
    if (r.part == name) return r.formula;
  return "";
}

TEST(Count, AFormulaGivesItsNumber) {
  std::vector<ModelConfig> all;
  for (const std::string& name : preset_names()) all.push_back(preset(name));
  for (bool biases : {false, true})
    for (NormKind kind : {NormKind::layer, NormKind::rms})
      for (MlpKind mlp : {MlpKind::gelu, MlpKind::swiglu})
        for (int64_t ratio : {2, 4})
          for (auto [kv_heads, width] : {std::pair<int64_t, int64_t>{0, 0}, {2, 0}, {0, 7}, {1, 7}}) {
            ModelConfig c;
            c.bias = c.qkv_bias = biases, c.norm_kind = kind, c.mlp = mlp, c.mlp_ratio = ratio;
            c.n_kv_head = kv_heads, c.d_head = width, c.context = 200;
            all.push_back(c);
            c.arch = Arch::encoder_decoder, c.source_vocab_size = 55, c.n_encoder_layer = 3;
            all.push_back(c);
          }
  for (Arch arch : {Arch::rnn, Arch::lstm, Arch::gru}) {
    ModelConfig c;
    c.arch = arch;
    all.push_back(c);
    c.source_vocab_size = 55, c.attend = Attend::additive;
    all.push_back(c);
  }
  for (size_t i = 0; i < all.size(); ++i)
    for (const CountRow& r : count_parameters(all[i]).rows)
      EXPECT_EQ(Formula(r.formula, all[i]).value(), r.count) << i << " " << r.part << ": " << r.formula;
}

TEST(Count, FormulasAreTheTextsWhereTheyCanBe) {
  ModelConfig c;
  EXPECT_EQ(formula(c, "attention: queries, keys, values"), "3 C^2");
  EXPECT_EQ(formula(c, "attention: output matrix"), "C^2 + C");
  EXPECT_EQ(formula(c, "MLP"), "8 C^2 + 5 C");
  EXPECT_EQ(formula(c, "normalisation"), "4 C");
  c.mlp_ratio = 2, c.n_kv_head = 2, c.qkv_bias = true;
  EXPECT_EQ(formula(c, "attention: queries, keys, values"), "C (H + 2 G) D + (H + 2 G) D");
  EXPECT_EQ(formula(c, "attention: output matrix"), "C^2 + C");
  EXPECT_EQ(formula(c, "MLP"), "2 C F + F + C");
  c.n_kv_head = 0, c.d_head = 7, c.bias = false;
  EXPECT_EQ(formula(c, "attention: queries, keys, values"), "3 C H D + 3 H D");
  EXPECT_EQ(formula(c, "attention: output matrix"), "C H D");
  EXPECT_EQ(formula(c, "MLP"), "2 C F");
  c.mlp = MlpKind::swiglu, c.bias = true;
  EXPECT_EQ(formula(c, "MLP"), "3 C F + 2 F + C");
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
