// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/block.h"

#include "bary/tensor/tap.h"

namespace bary {

Mlp::Mlp(const Scope& s, const BlockConfig& c) : kind(c.mlp), dropout(c.dropout), layer(c.layer) {
  const int64_t C = c.attention.n_embd;
  c_fc = Linear(s / "c_fc", C, c.mlp_width, c.bias);
  if (kind == MlpKind::swiglu) c_gate = Linear(s / "c_gate", C, c.mlp_width, c.bias);
  c_proj = Linear(s / "c_proj", c.mlp_width, C, c.bias, true);
}

Tensor Mlp::operator()(const Tensor& x, const Pass& pass, const Tensor& onto) const {
  auto site = drop_site(dropout, pass, layer, DropSite::mlp);
  const Tensor& direct = site.p > 0 ? Tensor() : onto;  // with dropout the sum comes after it
  Tensor y;
  if (kind == MlpKind::swiglu) {
    y = c_proj(activation(c_gate(x), Activation::silu) * c_fc(x), direct);
  } else {
    Activation act = kind == MlpKind::gelu        ? Activation::gelu
                     : kind == MlpKind::gelu_tanh ? Activation::gelu_tanh
                                                  : Activation::relu;
    y = bary::mlp(x, {c_fc.weight, c_fc.bias, c_proj.weight, c_proj.bias}, act, direct);
  }
  return site.p > 0 ? join_residual(y, onto, site, pass) : y;
}

Block::Block(const Scope& s, const BlockConfig& c) : config(c), hook(s.hook) {
  const int64_t C = c.attention.n_embd;
  const bool norms = c.norm != NormPlace::none;
  const bool one_norm = c.norm == NormPlace::parallel && c.mlp != MlpKind::none;  // shared by mixer and MLP
  if (norms && (c.mixer != Mixer::none || one_norm))
    ln_1 = Norm(s.in("ln_1", "ln1"), C, c.norm_kind, c.bias, c.norm_eps);
  if (c.mixer == Mixer::attention) attn.emplace(s / "attn", c.attention);
  if (norms && c.mlp != MlpKind::none && c.norm != NormPlace::parallel)
    ln_2 = Norm(s.in("ln_2", "ln2"), C, c.norm_kind, c.bias, c.norm_eps);
  if (c.mlp != MlpKind::none) mlp.emplace(s / "mlp", c);
}

Tensor Block::mix(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto) const {
  const Tensor& residual = config.residual ? onto : Tensor();
  if (config.mixer == Mixer::none) return onto;
  if (config.mixer == Mixer::average) return UniformAverage{config.layer, config.dropout}(x, pass, residual);
  return (*attn)(x, pass, rotary, residual);
}

Tensor Block::feed_forward(const Tensor& x, const Pass& pass, const Tensor& onto) const {
  if (!mlp) return onto;
  return (*mlp)(x, pass, config.residual ? onto : Tensor());
}

Tensor Block::operator()(const Tensor& input, const Pass& pass, const RotaryTable* rotary) const {
  Tensor x = tap(hook + ".hook_resid_pre", input);
  const bool has_mixer = config.mixer != Mixer::none, has_mlp = mlp.has_value();
  switch (config.norm) {
    case NormPlace::pre:
      if (has_mixer) x = mix(ln_1(x), pass, rotary, x);
      x = tap(hook + ".hook_resid_mid", x);
      if (has_mlp) x = feed_forward(ln_2(x), pass, x);
      break;
    case NormPlace::post:
      if (has_mixer) x = ln_1(mix(x, pass, rotary, x));
      x = tap(hook + ".hook_resid_mid", x);
      if (has_mlp) x = ln_2(feed_forward(x, pass, x));
      break;
    case NormPlace::none:
      x = mix(x, pass, rotary, x);
      x = tap(hook + ".hook_resid_mid", x);
      x = feed_forward(x, pass, x);
      break;
    case NormPlace::parallel: {
      Tensor n = has_mixer || has_mlp ? ln_1(x) : x;
      // without the residual mix(n) + mlp(n) is what replaces x: neither part may replace the other
      Tensor mixed = has_mixer ? mix(n, pass, rotary, x) : config.residual || !has_mlp ? x : Tensor();
      x = has_mlp ? (*mlp)(n, pass, mixed) : mixed;
      break;
    }
  }
  return tap(hook + ".hook_resid_post", x);
}

}  // namespace bary
