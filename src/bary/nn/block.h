// SPDX-License-Identifier: Apache-2.0
// One configurable block: every row of the chapter and every common family is a setting of it.
#pragma once
#include <optional>

#include "bary/nn/attention.h"

namespace bary {

enum class NormPlace {
  pre,       // x = x + mix(norm1(x));  x = x + mlp(norm2(x))      (GPT-2; the residual path is never normalised)
  post,      // x = norm1(x + mix(x));  x = norm2(x + mlp(x))      (Vaswani et al. 2017)
  none,      // x = x + mix(x);         x = x + mlp(x)
  parallel,  // n = norm1(x);           x = x + mix(n) + mlp(n)    (GPT-J, PaLM)
};
enum class Mixer { attention, average, none };
enum class MlpKind {
  none,
  gelu,       // down(gelu(up(x))), exact GELU
  gelu_tanh,  // GPT-2's approximation
  relu,
  swiglu,  // down(silu(gate(x)) * up(x)) (Shazeer 2020)
};

struct BlockConfig {
  AttentionConfig attention;
  NormPlace norm = NormPlace::pre;
  NormKind norm_kind = NormKind::layer;
  Mixer mixer = Mixer::attention;
  MlpKind mlp = MlpKind::gelu;
  int64_t mlp_width = 512;
  bool cross = false;    // between the two: x = x + cross(norm(x)), which reads pass.memory
  bool residual = true;  // off: each part replaces x instead of being added to it
  bool bias = true;
  double norm_eps = 1e-5, dropout = 0;
  int64_t layer = 0;
};

struct Mlp {
  Mlp(const Scope& s, const BlockConfig& c);
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& onto = {}) const;
  MlpKind kind;
  double dropout;
  int64_t layer;
  Linear c_fc, c_gate, c_proj;
};

struct Block {
  Block(const Scope& s, const BlockConfig& c);
  Tensor operator()(const Tensor& x, const Pass& pass, const RotaryTable* rotary) const;

  BlockConfig config;
  std::string hook;
  Norm ln_1, ln_cross, ln_2;
  std::optional<Attention> attn;
  std::optional<CrossAttention> cross_attn;
  std::optional<Mlp> mlp;

 private:
  Tensor mix(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto) const;
};

}  // namespace bary
