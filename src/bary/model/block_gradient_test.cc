// SPDX-License-Identifier: Apache-2.0
// Gradients of whole small models, for every norm place, residual, mixer and MLP: against the model run with attention
// by its definition, and against differences of the loss.
#include <gtest/gtest.h>

#include <cmath>

#include "bary/model/language_model.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

const std::vector<MlpKind> kMlps{MlpKind::none, MlpKind::gelu, MlpKind::gelu_tanh, MlpKind::relu, MlpKind::swiglu};

class BlockGradient : public testing::TestWithParam<std::tuple<NormPlace, Mixer>> {
 protected:
  BlockGradient() {
    RandomStream random(4, Purpose::test);
    for (int i = 0; i < 24; ++i) {
      ids.push_back(static_cast<int32_t>(random.below(23)));
      targets.push_back(static_cast<int32_t>(random.below(23)));
    }
  }
  // f(config) for every residual and MLP
  template <class F>
  void each(F f) const {
    for (bool residual : {true, false}) {
      for (MlpKind mlp : kMlps) {
        SCOPED_TRACE(fmt::format("{}, MLP {}", residual ? "residual" : "replacing", static_cast<int>(mlp)));
        ModelConfig c;
        c.vocab_size = 23, c.block_size = 12, c.n_embd = 16, c.n_layer = 2, c.mlp_ratio = 2, c.n_kv_head = 2;
        std::tie(c.norm, c.mixer) = GetParam();
        c.residual = residual, c.mlp = mlp;
        f(c);
      }
    }
  }
  std::vector<float> gradient(const LanguageModel& model) const {
    std::vector<float> g(static_cast<size_t>(model.parameters().size()), 0.0f);
    Tape tape(g.data());
    tape.backward(model.loss(ids, targets, 2).loss);
    return g;
  }
  void compare_with_definition(const ModelConfig& config) const;
  void compare_with_differences(const ModelConfig& config) const;
  std::vector<int32_t> ids, targets;
};

double dot(std::span<const float> a, std::span<const float> b) {
  double s = 0;
  for (size_t i = 0; i < a.size(); ++i) s += static_cast<double>(a[i]) * b[i];
  return s;
}

void BlockGradient::compare_with_definition(const ModelConfig& base) const {
  for (Position pos : {Position::learned, Position::rotary, Position::alibi}) {
    ModelConfig config = base;
    config.pos = pos;
    LanguageModel model(config, 5);
    const std::vector<float> fused = gradient(model);
    Probe probe;
    int edits = 0;
    for (const char* name : {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"})
      probe.edit(name, [&](const Tensor& p) { return ++edits, p; });
    const std::vector<float> defined = gradient(model);
    EXPECT_EQ(edits, 2);
    auto part = [&](const std::vector<float>& of, const Parameter& p) {
      return std::span(of).subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.shape.volume()));
    };
    for (const Parameter& p : model.parameters().list()) {
      auto a = part(fused, p), b = part(defined, p);
      // A score's gradient is a difference of products with the values, and small where these cancel: the rounding of
      // queries and keys is that of the values beside them.
      double worst = 0, scale = 0;
      const size_t at = p.name.find("attn.");
      if (at != std::string::npos) {
        for (float v : part(defined, *model.parameters().find(p.name.substr(0, at) + "attn.v_proj.weight")))
          scale = std::max(scale, std::fabs(static_cast<double>(v)));
      }
      for (size_t i = 0; i < a.size(); ++i) {
        const double d = std::fabs(static_cast<double>(a[i]) - b[i]);
        worst = d <= worst ? worst : std::isnan(d) ? HUGE_VAL : d;
        scale = std::max(scale, std::fabs(static_cast<double>(b[i])));
      }
      // 24 rows, each through two blocks of 12 keys and up to 32 channels; the two differ in rounding only
      EXPECT_LE(worst, 16 * 0x1p-24 * std::sqrt(24.0 + 2 * (12 + 32)) * scale) << p.name;
    }
  }
}

// (loss(w + h d) - loss(w - h d)) / 2h = g . d for a unit vector d over one tensor: along its gradient, where the
// difference is largest, and in a random direction, which a wrong entry anywhere would turn. h = 0.01 of a vector of
// length 1: the cubic term is below 2 % for these models, and the rounding of a loss of 24 rows, about 24 x 4 eps,
// becomes 3e-4 after the division. ReLU has corners, whose share of the step grows with it: a tenth of the step, at ten
// times the rounding, and 5 %.
void BlockGradient::compare_with_differences(const ModelConfig& config) const {
  LanguageModel model(config, 5);
  const std::vector<float> g = gradient(model);
  auto loss_at = [&](std::span<float> values, std::span<const float> base, std::span<const float> d, double h) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(base[i] + h * d[i]);
    model.parameters().changed();
    return model.loss(ids, targets, 2).sum;
  };
  for (const Parameter& p : model.parameters().list()) {
    auto values = model.parameters().values_of(p);
    const std::vector<float> base(values.begin(), values.end());
    auto mine = std::span(g).subspan(static_cast<size_t>(p.offset), values.size());
    const double length = std::sqrt(dot(mine, mine));
    RandomStream random(6, Purpose::test, 0, static_cast<uint64_t>(p.offset));
    for (bool along : {true, false}) {
      if (along && length == 0) continue;
      std::vector<float> d(values.size());
      for (size_t i = 0; i < d.size(); ++i) d[i] = along ? mine[i] : static_cast<float>(random.normal());
      const double norm = std::sqrt(dot(d, d));
      for (float& x : d) x = static_cast<float>(x / norm);
      const bool corners = config.mlp == MlpKind::relu;
      const double h = corners ? 0.001 : 0.01,
                   difference = (loss_at(values, base, d, h) - loss_at(values, base, d, -h)) / (2 * h);
      EXPECT_NEAR(difference, dot(mine, d), (corners ? 0.05 : 0.02) * length + (corners ? 1e-2 : 1e-3))
          << p.name << (along ? " along" : " across");
    }
    std::copy(base.begin(), base.end(), values.begin());
    model.parameters().changed();
  }
}

TEST_P(BlockGradient, IsTheDefinitions) {
  if (std::get<1>(GetParam()) != Mixer::attention) return;  // the others have no second form
  each([&](const ModelConfig& c) { compare_with_definition(c); });
}

TEST_P(BlockGradient, FollowsDifferencesOfTheLoss) {
  each([&](const ModelConfig& c) { compare_with_differences(c); });
}

// What trains must be connected: every parameter of every setting gets a gradient.
TEST_P(BlockGradient, ReachesEveryParameter) {
  each([&](const ModelConfig& c) {
    LanguageModel model(c, 5);
    const std::vector<float> g = gradient(model);
    for (const Parameter& p : model.parameters().list()) {
      auto mine = std::span(g).subspan(static_cast<size_t>(p.offset), static_cast<size_t>(p.shape.volume()));
      EXPECT_GT(dot(mine, mine), 0) << p.name;
    }
  });
}

std::string name_of(const std::tuple<NormPlace, Mixer>& c) {
  const char* norms[] = {"pre", "post", "none", "parallel"};
  const char* mixers[] = {"attention", "average", "nomixer"};
  return fmt::format("{}_{}", norms[static_cast<size_t>(std::get<0>(c))], mixers[static_cast<size_t>(std::get<1>(c))]);
}

INSTANTIATE_TEST_SUITE_P(Every, BlockGradient,
                         testing::Combine(testing::Values(NormPlace::pre, NormPlace::post, NormPlace::none,
                                                          NormPlace::parallel),
                                          testing::Values(Mixer::attention, Mixer::average, Mixer::none)),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace bary
