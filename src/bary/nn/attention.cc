// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/attention.h"

#include <array>

#include "bary/tensor/tap.h"

namespace bary {

Attention::Attention(const Scope& s, const AttentionConfig& c) : config(c), pattern_tap(s.hook + ".hook_pattern") {
  const int64_t q = c.n_head * c.d_head, kv = c.n_kv_head * c.d_head;
  const std::array<std::pair<const char*, int64_t>, 3> parts{{{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}}};
  const double bound = 1 / std::sqrt(static_cast<double>(c.n_embd));
  const bool gpt2 = s.init == InitStyle::gpt2;
  std::vector<Tensor> weights, biases;
  for (auto [name, rows] : parts)
    weights.push_back((s / name).add("weight", {rows, c.n_embd}, Role::matrix,
                                     gpt2 ? Init{Init::Kind::normal, 0.02} : Init{Init::Kind::uniform, bound}));
  qkv_weight = s.parameters->join(weights);
  if (c.qkv_bias) {
    for (auto [name, rows] : parts)
      biases.push_back((s / name).add("bias", {rows}, Role::bias,
                                      gpt2 ? Init{Init::Kind::constant, 0} : Init{Init::Kind::uniform, bound}));
    qkv_bias = s.parameters->join(biases);
  }
  if (c.proj) out_proj = Linear(s / "out_proj", q, c.n_embd, c.bias, true);
}

Tensor Attention::operator()(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto) const {
  Tensor y = heads(linear(x, qkv_weight, qkv_bias), pass, rotary);
  auto site = drop_site(config.dropout, pass, config.layer, DropSite::mixer);
  if (!config.proj) return join_residual(y, onto, site, pass);
  return site.p > 0 ? join_residual(out_proj(y), onto, site, pass) : out_proj(y, onto);
}

Tensor Attention::heads(const Tensor& qkv, const Pass& pass, const RotaryTable* rotary) const {
  AttentionOptions o;
  o.heads = config.n_head;
  o.kv_heads = config.n_kv_head;
  o.mask = config.mask;
  o.window = config.window;
  o.scale = config.scale;
  o.alibi = config.pos == Position::alibi;
  o.rotary = config.pos == Position::rotary ? rotary : nullptr;
  o.dropout = drop_site(config.dropout, pass, config.layer, DropSite::attention);
  o.rows = {pass.sequence, 0};
  if (pass.cache) o.cache = pass.cache->attention[static_cast<size_t>(config.layer)].get();
  if (auto* edit = Probe::editing(pattern_tap)) return attention_by_definition(qkv, o, *edit);
  if (auto* look = Probe::looking(pattern_tap)) o.look = *look;
  return attention(qkv, o);
}

Tensor UniformAverage::operator()(const Tensor& x, const Pass& pass, const Tensor& onto) const {
  Tensor y =
      pass.cache ? prefix_mean(x, pass.cache->average[static_cast<size_t>(layer)], pass.first()) : prefix_mean(x);
  auto site = drop_site(dropout, pass, layer, DropSite::mixer);
  return join_residual(y, onto, site, pass);
}

Tensor join_residual(const Tensor& y, const Tensor& onto, const kernel::DropoutSite& site, const Pass& pass) {
  Tensor kept = dropout(y, site, {pass.sequence, pass.first()});
  return onto.defined() ? onto + kept : kept;
}

}  // namespace bary
