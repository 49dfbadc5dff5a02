// SPDX-License-Identifier: Apache-2.0
// Against nn.MultiheadAttention of PyTorch with its weights copied: 64 channels, 4 heads, causal, 37 positions.
#include "bary/nn/attention.h"
#include "golden.h"

namespace bary::parity {
namespace {

struct Case {
  const char* name;
  bool qkv_bias, out_bias;
};

class Multihead : public testing::TestWithParam<Case> {};

TEST_P(Multihead, OutputAndGradientsFollowPyTorch) {
  const Case c = GetParam();
  Golden g(c.name);
  AttentionConfig config;
  config.n_embd = 64, config.n_head = 4, config.n_kv_head = 4, config.d_head = 16;
  config.qkv_bias = c.qkv_bias, config.bias = c.out_bias, config.pos = Position::none;
  Parameters p(0);
  Attention attention(Scope{&p, "attn", "attn"}, config);
  const std::vector<float> in = g.floats("weight.in_proj_weight");
  const char* parts[] = {"q_proj", "k_proj", "v_proj"};
  for (size_t i = 0; i < 3; ++i) {
    set_parameter(p, std::string("attn.") + parts[i] + ".weight", std::span(in).subspan(i * 64 * 64, 64 * 64));
    if (c.qkv_bias) {
      const std::vector<float> b = g.floats("weight.in_proj_bias");
      set_parameter(p, std::string("attn.") + parts[i] + ".bias", std::span(b).subspan(i * 64, 64));
    }
  }
  set_parameter(p, "attn.out_proj.weight", g.floats("weight.out_proj.weight"));
  if (c.out_bias) set_parameter(p, "attn.out_proj.bias", g.floats("weight.out_proj.bias"));
  p.changed();

  std::vector<float> gradients(static_cast<size_t>(p.size()), 0.0f);
  Tape tape(gradients.data());
  Tensor x = g.wanted("x");
  Tensor y = attention(x, Pass{}, nullptr);
  tape.backward(sum(y * g.tensor("dy")));

  const std::vector<float> truth = g.floats("y_truth");
  expect_within(y.to_vector(), truth, 4e-7, "y", g.floats("y"));  // on outputs of mean magnitude 0.16
  // dx sums 192 products, each of which went through the pattern's 37
  const std::vector<float> dx = g.floats("dx_truth");
  expect_within(x.grad_vector(), dx, chain_bound(2, 192 + 37, dx), "dx", g.floats("dx"));
  // weights' gradients sum over 2 x 37 positions; the golden itself is float32, so its own rounding counts too
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> want = g.floats("grad.in_proj_weight");
    const auto part = std::span(want).subspan(i * 64 * 64, 64 * 64);
    const std::string name = std::string("attn.") + parts[i] + ".weight";
    expect_within(gradient_of(p, gradients, name), part, chain_bound(4, 74, part), name);
    if (!c.qkv_bias) continue;
    const std::vector<float> b = g.floats("grad.in_proj_bias");
    const auto part_b = std::span(b).subspan(i * 64, 64);
    // a bias on the keys moves all scores of a row alike: its true gradient is 0, and what is left is rounding of the
    // size of the sums that cancel, which the queries' show
    const double scale = std::max(largest(part_b), largest(std::span(b).first(64)));
    expect_within(gradient_of(p, gradients, std::string("attn.") + parts[i] + ".bias"), part_b,
                  4 * kEps * std::sqrt(74.0) * scale, std::string(parts[i]) + ".bias");
  }
  const std::vector<float> w = g.floats("grad.out_proj.weight");
  expect_within(gradient_of(p, gradients, "attn.out_proj.weight"), w, chain_bound(4, 74, w), "out_proj.weight");
  if (c.out_bias) {
    const std::vector<float> b = g.floats("grad.out_proj.bias");
    expect_within(gradient_of(p, gradients, "attn.out_proj.bias"), b, chain_bound(4, 74, b), "out_proj.bias");
  }
}

INSTANTIATE_TEST_SUITE_P(Biases, Multihead,
                         testing::Values(Case{"multihead_no_bias", false, false},
                                         Case{"multihead_out_bias", false, true}, Case{"multihead_bias", true, true}),
                         [](const auto& which) { return std::string(which.param.name).substr(10); });

}  // namespace
}  // namespace bary::parity
