// SPDX-License-Identifier: Apache-2.0
// Self-attention over all heads, with or without an output matrix, and the uniform average that it grows from.
#pragma once
#include "bary/nn/layers.h"
#include "bary/nn/pass.h"

namespace bary {

enum class Position {
  none,        // a causal bag of words
  learned,     // x + P[t], a table of parameters (Radford et al. 2019)
  sinusoidal,  // x + PE(t), PE(t,2i) = sin(t / 10000^(2i/C)), cos at 2i+1 (Vaswani et al. 2017)
  rotary,      // q and k turned by t theta^(-2i/D) (Su et al. 2021)
  alibi,       // score - 2^(-8(h+1)/H) |t - j| (Press et al. 2022)
};

struct AttentionConfig {
  int64_t n_embd = 128, n_head = 4, n_kv_head = 4, d_head = 32;
  Mask mask = Mask::causal;
  int64_t window = 0;
  Position pos = Position::learned;
  bool scale = true;      // scores / sqrt(d_head)
  bool qkv_bias = false;  // the chapter's own head has none
  bool proj = true;       // the output matrix W_O with its bias
  bool bias = true;
  double dropout = 0;
  int64_t layer = 0;
};

// y = [softmax(mask(q k^T scale)) v for every head] W_O + onto              (B,T,C) -> (B,T,C)
struct Attention {
  Attention(const Scope& s, const AttentionConfig& c);
  Tensor operator()(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto = {}) const;

  AttentionConfig config;
  std::string pattern_tap;
  Linear qkv;  // q_proj, k_proj, v_proj by name, one matrix in memory: one product serves the three
  Linear out_proj;

 private:
  Tensor heads(const Tensor& qkv, const Pass& pass, const RotaryTable* rotary) const;
};

// The same with queries from x and keys and values from another text, pass.memory: the second attention of an
// encoder-decoder's decoder. Positions of two texts have no order: all of the source is seen, none of it turned.
struct CrossAttention {
  CrossAttention(const Scope& s, const AttentionConfig& c);
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& onto = {}) const;

  AttentionConfig config;
  std::string pattern_tap;
  Linear q_proj, kv;  // k_proj, v_proj
  Linear out_proj;

 private:
  Tensor heads(const Tensor& q, const Pass& pass) const;
};

// y_t = mean of x_0 .. x_t, dropout, + onto
struct UniformAverage {
  int64_t layer = 0;
  double dropout = 0;
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& onto = {}) const;
};

// onto + dropout(y), either of which may be absent
Tensor join_residual(const Tensor& y, const Tensor& onto, const kernel::DropoutSite& site, const Pass& pass);

}  // namespace bary
