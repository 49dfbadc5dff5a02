// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/attention.h"

#include <algorithm>
#include <initializer_list>

#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {

namespace {

// Several projections of one input as one matrix, each a parameter by its name
Linear joined(const Scope& s, const AttentionConfig& c, std::initializer_list<std::pair<const char*, int64_t>> parts) {
  std::vector<Tensor> weights, biases;
  for (auto [name, rows] : parts)
    weights.push_back((s / name).add("weight", {rows, c.n_embd}, Role::matrix, s.matrix(c.n_embd, rows)));
  for (auto [name, rows] : parts)
    if (c.qkv_bias) biases.push_back((s / name).add("bias", {rows}, Role::bias, s.vector(c.n_embd)));
  Linear l;
  l.weight = s.parameters->join(weights);
  if (c.qkv_bias) l.bias = s.parameters->join(biases);
  return l;
}

// What the configuration and the pass say about the heads; masks and positions are the caller's.
AttentionOptions head_options(const AttentionConfig& c, const Pass& pass, DropSite site) {
  AttentionOptions o;
  o.heads = c.n_head;
  o.kv_heads = c.n_kv_head;
  o.scale = c.scale;
  o.dropout = drop_site(c.dropout, pass, c.layer, site);
  o.rows = {pass.sequence, 0};
  return o;
}

// y W_O, dropout, + onto
Tensor finish(const Tensor& y, const AttentionConfig& c, const Linear& out_proj, const Pass& pass, const Tensor& onto,
              DropSite place) {
  auto site = drop_site(c.dropout, pass, c.layer, place);
  if (!c.proj) return join_residual(y, onto, site, pass);
  return site.p > 0 ? join_residual(out_proj(y), onto, site, pass) : out_proj(y, onto);
}

}  // namespace

Attention::Attention(const Scope& s, const AttentionConfig& c) : config(c), pattern_tap(s.hook + ".hook_pattern") {
  const int64_t q = c.n_head * c.d_head, kv = c.n_kv_head * c.d_head;
  qkv = joined(s, c, {{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}});
  if (c.proj) out_proj = Linear(s / "out_proj", q, c.n_embd, c.bias, true);
}

Tensor Attention::operator()(const Tensor& x, const Pass& pass, const RotaryTable* rotary, const Tensor& onto) const {
  return finish(heads(qkv(x), pass, rotary), config, out_proj, pass, onto, DropSite::mixer);
}

Tensor Attention::heads(const Tensor& projected, const Pass& pass, const RotaryTable* rotary) const {
  AttentionOptions o = head_options(config, pass, DropSite::attention);
  o.mask = config.mask;
  o.window = config.window;
  o.alibi = config.pos == Position::alibi;
  o.rotary = config.pos == Position::rotary ? rotary : nullptr;
  if (config.mask == Mask::full) o.lengths.assign(pass.lengths.begin(), pass.lengths.end());
  if (config.mask == Mask::causal) o.prefix.assign(pass.prefix.begin(), pass.prefix.end());
  if (pass.cache) o.cache = pass.cache->attention[static_cast<size_t>(config.layer)].get();
  o.look = Probe::looking(pattern_tap);
  if (const auto edit = Probe::editing(pattern_tap)) return attention_by_definition(projected, o, edit);
  return attention(projected, o);
}

CrossAttention::CrossAttention(const Scope& s, const AttentionConfig& c)
    : config(c), pattern_tap(s.hook + ".hook_pattern") {
  const int64_t q = c.n_head * c.d_head, kv_width = c.n_kv_head * c.d_head;
  q_proj = Linear(s / "q_proj", c.n_embd, q, c.qkv_bias);
  kv = joined(s, c, {{"k_proj", kv_width}, {"v_proj", kv_width}});
  if (c.proj) out_proj = Linear(s / "out_proj", q, c.n_embd, c.bias, true);
}

Tensor CrossAttention::operator()(const Tensor& x, const Pass& pass, const Tensor& onto) const {
  BARY_CHECK(pass.memory && pass.memory->states.defined(),
             "cross-attention: there is no source to read; encode one and hand it in as pass.memory");
  return finish(heads(q_proj(x), pass), config, out_proj, pass, onto, DropSite::cross);
}

Tensor CrossAttention::heads(const Tensor& q, const Pass& pass) const {
  AttentionOptions o = head_options(config, pass, DropSite::cross_attention);
  o.mask = Mask::full;
  o.lengths = pass.memory->lengths;
  o.look = Probe::looking(pattern_tap);
  if (pass.cache) {  // keys and values of a source are made once, however long the target grows
    BARY_CHECK(!Probe::editing(pattern_tap),
               "cross-attention: {} is edited over the whole text at once, and a cache came; run without one",
               pattern_tap);
    auto& kept = pass.cache->memory[static_cast<size_t>(config.layer)];
    if (!kept) kept = std::make_unique<KeyValues>(memorise(kv(pass.memory->states), config.n_kv_head));
    return cross_attention(q, *kept, pass.cache->source, o);
  }
  const Tensor keys_values = kv(pass.memory->states);
  if (const auto edit = Probe::editing(pattern_tap)) return cross_attention_by_definition(q, keys_values, o, edit);
  return cross_attention(q, keys_values, o);
}

Tensor rows_of(const Tensor& x, std::span<const int64_t> which) {
  refuse_gradient("rows_of", x);
  if (!x.defined()) return x;
  for (int64_t b : which) BARY_CHECK(b >= 0 && b < x.rows(), "row {} of {} is asked for", b, x.rows());
  Tensor y(Shape{static_cast<int64_t>(which.size()), x.channels()});
  for (size_t b = 0; b < which.size(); ++b) std::copy_n(x.row(which[b]), x.channels(), y.row(static_cast<int64_t>(b)));
  return y;
}

void KvCache::reorder(const std::vector<int64_t>& from) {
  for (auto& layer : attention)
    if (layer) layer->reorder(from);
  for (Tensor& sums : average) sums = rows_of(sums, from);
  for (RecurrentState& s : recurrent.layers) s = {rows_of(s.h, from), rows_of(s.c, from)};
  std::vector<int64_t> next;
  for (int64_t b : from) {
    if (source.empty()) continue;
    BARY_CHECK(b >= 0 && b < std::ssize(source), "reorder: sequence {} of a cache of {}", b, source.size());
    next.push_back(source[static_cast<size_t>(b)]);
  }
  source = std::move(next);
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
