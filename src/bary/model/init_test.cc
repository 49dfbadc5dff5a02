// SPDX-License-Identifier: Apache-2.0
// First values: the distribution of every tensor, once each, and the loss a model starts with.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "bary/model/language_model.h"

namespace bary {
namespace {

struct Moments {
  double mean = 0, std = 0, largest = 0;
};
Moments moments(std::span<const float> v) {
  Moments m;
  double square = 0;
  for (float x : v)
    m.mean += x, square += static_cast<double>(x) * x,
        m.largest = std::max(m.largest, std::fabs(static_cast<double>(x)));
  const auto n = static_cast<double>(v.size());
  m.mean /= n;
  m.std = std::sqrt(square / n - m.mean * m.mean);
  return m;
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// A standard deviation over n values is known to 1/sqrt(2 n): 3 % are more than 5 of these from 14,000 values on.
void expect_std(const std::string& name, std::span<const float> v, double std) {
  ASSERT_GE(v.size(), 14000u) << name << ": too small to measure";
  const Moments m = moments(v);
  EXPECT_NEAR(m.std, std, 0.03 * std) << name;
  EXPECT_NEAR(m.mean, 0, 5 * std / std::sqrt(static_cast<double>(v.size()))) << name;
}

TEST(Init, Gpt2) {
  for (bool tied : {true, false}) {
    ModelConfig c = preset("gpt2");
    c.vocab_size = 1024, c.block_size = 128, c.n_layer = 12, c.n_embd = 120, c.tie_embeddings = tied;
    LanguageModel model(c, 7);
    int residual = 0;
    for (const Parameter& p : model.parameters().list()) {
      auto v = model.parameters().values_of(p);
      if (p.role == Role::norm) {
        EXPECT_EQ(moments(v).std, 0) << p.name;
        EXPECT_EQ(v[0], ends_with(p.name, "weight") ? 1.0f : 0.0f) << p.name;
      } else if (p.role == Role::bias) {
        EXPECT_EQ(moments(v).largest, 0) << p.name;
      } else if (ends_with(p.name, "out_proj.weight") || ends_with(p.name, "mlp.c_proj.weight")) {
        ++residual;  // scaled once each, by the number of additions to the residual path
        expect_std(p.name, v, 0.02 / std::sqrt(24.0));
      } else {
        expect_std(p.name, v, 0.02);
      }
    }
    EXPECT_EQ(residual, 24);
    EXPECT_EQ(model.parameters().find("lm_head.weight") == nullptr, tied);
  }
}

TEST(Init, PyTorchsDefaults) {
  ModelConfig c;
  c.qkv_bias = true, c.mlp = MlpKind::swiglu;
  LanguageModel model(c, 7);
  for (const Parameter& p : model.parameters().list()) {
    auto v = model.parameters().values_of(p);
    const double fan_in = ends_with(p.name, "mlp.c_proj.weight") || ends_with(p.name, "mlp.c_proj.bias") ? 512 : 128;
    if (p.role == Role::norm) {
      EXPECT_EQ(moments(v).std, 0) << p.name;
    } else if (p.role == Role::embedding) {
      expect_std(p.name, v, 1);
    } else {  // uniform in +-1/sqrt(fan_in): the standard deviation is the bound over sqrt(3)
      const double bound = 1 / std::sqrt(fan_in);
      EXPECT_LE(moments(v).largest, bound) << p.name;
      EXPECT_GT(moments(v).largest, 0.95 * bound) << p.name;
      if (p.role == Role::matrix) expect_std(p.name, v, bound / std::sqrt(3.0));
    }
  }
}

TEST(Init, DependsOnSeedAndNameOnly) {
  ModelConfig small, large;
  large.n_layer = 3, large.qkv_bias = true;
  LanguageModel a(small, 7), b(large, 7), other(small, 8);
  for (const Parameter& p : a.parameters().list()) {
    const Parameter* q = b.parameters().find(p.name);
    ASSERT_NE(q, nullptr) << p.name;
    auto va = a.parameters().values_of(p), vb = b.parameters().values_of(*q);
    EXPECT_TRUE(std::equal(va.begin(), va.end(), vb.begin(), vb.end())) << p.name;
    auto vo = other.parameters().values_of(p);
    EXPECT_EQ(std::equal(va.begin(), va.end(), vo.begin(), vo.end()), p.role == Role::norm) << p.name;
  }
  std::map<float, std::string> first;  // no two tensors share their numbers
  for (const Parameter& p : b.parameters().list()) {
    if (p.role == Role::norm) continue;
    auto [at, fresh] = first.emplace(b.parameters().values_of(p)[0], p.name);
    EXPECT_TRUE(fresh) << p.name << " begins as " << at->second;
  }
}

// A new model knows nothing: its loss is ln V.
TEST(Init, TheFirstLossIsLnV) {
  for (int64_t V : {1024, 5003}) {
    ModelConfig c = preset("gpt2");
    c.vocab_size = V, c.block_size = 128, c.n_layer = 4, c.n_head = 4, c.n_embd = 128;
    LanguageModel model(c, 7);
    RandomStream random(1, Purpose::test);
    std::vector<int32_t> ids(512), targets(512);
    for (auto* list : {&ids, &targets})
      for (int32_t& id : *list) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
    const LossSum loss = model.loss(ids, targets, 4);
    EXPECT_NEAR(loss.sum / 512, std::log(static_cast<double>(V)), 0.1) << V;
  }
}

}  // namespace
}  // namespace bary
