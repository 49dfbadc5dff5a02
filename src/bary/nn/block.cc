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
  auto norm = [&](const Scope& at) { return Norm(at, C, c.norm_kind, c.bias, c.norm_eps); };
  if (norms && (c.mixer != Mixer::none || one_norm)) ln_1 = norm(s.in("ln_1", "ln1"));
  if (c.mixer == Mixer::attention) attn.emplace(s / "attn", c.attention);
  if (norms && c.cross) ln_cross = norm(s.in("ln_cross_attn", "ln_cross"));
  if (c.cross) cross_attn.emplace(s.in("crossattention", "cross_attn"), c.attention);
  if (norms && c.mlp != MlpKind::none && c.norm != NormPlace::parallel) ln_2 = norm(s.in("ln_2", "ln2"));
  if (c.mlp != MlpKind::none) mlp.emplace(s / "mlp", c);
}

Tensor Block::mix(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto) const {
  if (config.mixer == Mixer::average) return UniformAverage{config.layer, config.dropout}(x, pass, onto);
  return (*attn)(x, pass, rotary, onto);
}

namespace {

// x + f(norm(x)), norm(x + f(x)) or x + f(x), by the place of the norm; without the residual f alone replaces x
template <class F>
Tensor sub_layer(const BlockConfig& c, const Norm& norm, const Tensor& x, const F& f) {
  const Tensor& onto = c.residual ? x : Tensor();
  if (c.norm == NormPlace::pre) return f(norm(x), onto);
  return c.norm == NormPlace::post ? norm(f(x, onto)) : f(x, onto);
}

}  // namespace

Tensor Block::operator()(const Tensor& input, const Pass& pass, const RotaryTable* rotary) const {
  auto mixed = [&](const Tensor& n, const Tensor& onto) { return mix(n, pass, rotary, onto); };
  auto read = [&](const Tensor& n, const Tensor& onto) { return (*cross_attn)(n, pass, onto); };
  auto fed = [&](const Tensor& n, const Tensor& onto) { return (*mlp)(n, pass, onto); };
  const bool has_mixer = config.mixer != Mixer::none;

  Tensor x = tap(hook + ".hook_resid_pre", input);
  if (config.norm == NormPlace::parallel) {
    Tensor n = has_mixer || mlp ? ln_1(x) : x;
    const Tensor onto = config.residual ? x : Tensor();
    // without the residual mix(n) + mlp(n) is what replaces x: neither part may replace the other
    Tensor half = has_mixer ? mixed(n, onto) : mlp ? onto : x;
    return tap(hook + ".hook_resid_post", mlp ? fed(n, half) : half);
  }
  if (has_mixer) x = sub_layer(config, ln_1, x, mixed);
  if (cross_attn) x = sub_layer(config, ln_cross, x, read);
  x = tap(hook + ".hook_resid_mid", x);
  if (mlp) x = sub_layer(config, ln_2, x, fed);
  return tap(hook + ".hook_resid_post", x);
}

}  // namespace bary
