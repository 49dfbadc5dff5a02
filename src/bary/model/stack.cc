// SPDX-License-Identifier: Apache-2.0
#include "bary/model/stack.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

// PE(t, 2i) = sin(t / 10000^(2i/C)), PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5)
Tensor sinusoidal_table(int64_t positions, int64_t C) {
  Tensor table(Shape{positions, C});
  for (int64_t i = 0; i < C; i += 2) {
    double frequency = portable::pow(10000.0, -static_cast<double>(i) / static_cast<double>(C));
    for (int64_t t = 0; t < positions; ++t) {
      double angle = static_cast<double>(t) * frequency;
      table.row(t)[i] = static_cast<float>(portable::sin(angle));
      if (i + 1 < C) table.row(t)[i + 1] = static_cast<float>(portable::cos(angle));
    }
  }
  return table;
}

BlockConfig block_config(const ModelConfig& c, const StackSide& side, int64_t layer) {
  BlockConfig b;
  b.attention = {c.n_embd, c.n_head,   c.heads_kv(), c.head_width(), side.mask, c.window, c.pos,
                 c.scale,  c.qkv_bias, c.attn_proj,  c.bias,         c.dropout, layer};
  b.norm = c.norm, b.norm_kind = c.norm_kind, b.mixer = c.mixer, b.mlp = c.mlp, b.mlp_width = c.mlp_width();
  b.residual = c.residual, b.bias = c.bias, b.norm_eps = c.norm_eps, b.dropout = c.dropout, b.layer = layer;
  b.cross = side.cross;
  return b;
}

}  // namespace

Stack::Stack(const Scope& s, const ModelConfig& c, const StackSide& side) : config_(c), side_(side), hook_(s.hook) {
  if (side.tokens.defined()) {
    wte_.weight = side.tokens;
  } else {
    wte_ = Embedding(s.in("wte", "embed"), side.vocab_size, c.n_embd);
  }
  if (c.pos == Position::learned) wpe_ = Embedding(s.in("wpe", "pos_embed"), c.positions(), c.n_embd);
  ensure_positions(c.positions());
  for (int64_t i = 0; i < side.n_layer; ++i) {
    std::string n = std::to_string(i);
    blocks_.emplace_back(s.in("h." + n, side.layers + n), block_config(c, side, side.first_layer + i));
  }
  if (c.final_norm()) ln_f_ = Norm(s.in("ln_f", "ln_final"), c.n_embd, c.norm_kind, c.bias, c.norm_eps);
}

void Stack::ensure_positions(int64_t n) {
  const ModelConfig& c = config_;
  BARY_CHECK(
      c.pos != Position::learned || n <= c.positions(),
      "this model learned {} positions and {} are asked for; shorten the prompt or the generation, or train with a "
      "larger context (or with pos=rotary or alibi, which have no table to end)",
      c.positions(), n);
  const int64_t most = (int64_t{1} << 28) / c.position_width();  // as of a configuration
  BARY_CHECK(
      (c.pos != Position::sinusoidal && c.pos != Position::rotary) || n <= most,
      "{} positions are asked for, and a table of them for a width of {} would be of over 2^28 numbers; ask for at "
      "most {}",
      n, c.position_width(), most);
  std::lock_guard lock(guarded_->mutex);
  Tables& t = guarded_->tables;
  if (c.pos == Position::sinusoidal && (!t.sinusoids.defined() || t.sinusoids.dim(0) < n))
    t.sinusoids = sinusoidal_table(n, c.n_embd);
  if (c.pos == Position::rotary && (!t.rotary || t.rotary->positions < n))
    t.rotary = std::make_shared<RotaryTable>(n, c.head_width(), c.rotary());
}

Stack::Tables Stack::tables() const {
  std::lock_guard lock(guarded_->mutex);
  return guarded_->tables;
}

Tensor Stack::embed(std::span<const int32_t> ids, int64_t B, const Pass& pass, const Tensor& sinusoids) const {
  EmbeddingOptions o;
  o.positions = config_.pos == Position::learned ? wpe_.weight : sinusoids;
  o.first = pass.first();
  o.scale = config_.embed_scale ? std::sqrt(static_cast<float>(config_.n_embd)) : 1.0f;
  const Tensor x = embedding(ids, B, wte_.weight, o);
  const auto site = drop_site(config_.dropout, pass, side_.first_layer, DropSite::embedding);
  return tap(hook_.empty() ? "hook_embed" : hook_ + ".hook_embed", dropout(x, site, {pass.sequence, 0}));
}

void Stack::check(const Pass& pass, int64_t T) const {
  const bool attends = config_.mixer == Mixer::attention;
  BARY_CHECK(
      pass.prefix.empty() || (attends && side_.mask == Mask::causal),
      "a prefix is seen by all of a causal line; this stack has another mask or no attention, and cannot show it");
  if (!pass.cache) return;
  const KvCache& cache = *pass.cache;
  BARY_CHECK(cache.attention.size() == blocks_.size() && cache.average.size() == blocks_.size() &&
                 cache.memory.size() == (side_.cross ? blocks_.size() : 0),
             "the cache was made for {} layers, this stack has {}; take one from its make_cache",
             cache.attention.size(), blocks_.size());
  BARY_CHECK(pass.first() + T <= cache.capacity,
             "the cache holds {} positions and {} more come, its room is {}; make a larger cache", pass.first(), T,
             cache.capacity);
}

Tensor Stack::operator()(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  FlushDenormals flush;  // as in every worker
  const int64_t T = B > 0 ? static_cast<int64_t>(ids.size()) / B : 0;
  check(pass, T);
  const Tables computed = tables();
  if (Tape::active() && computed.rotary) Tape::active()->append([kept = computed.rotary] {});  // until backward is done
  Tensor x = embed(ids, B, pass, computed.sinusoids);
  for (const Block& block : blocks_) x = block(x, pass, computed.rotary.get());
  if (pass.cache) pass.cache->length += T;
  return config_.final_norm() ? ln_f_(x) : x;
}

KvCache Stack::make_cache(int64_t B, int64_t capacity) const {
  KvCache cache;
  cache.capacity = capacity;
  cache.memory.resize(side_.cross ? static_cast<size_t>(side_.n_layer) : 0);
  for (int64_t i = 0; side_.cross && i < B; ++i) cache.source.push_back(i);
  for (int64_t i = 0; i < side_.n_layer; ++i) {
    bool attends = config_.mixer == Mixer::attention;
    cache.attention.push_back(
        attends ? std::make_unique<KeyValues>(B, config_.heads_kv(), config_.head_width(), capacity) : nullptr);
    cache.average.push_back(config_.mixer == Mixer::average ? Tensor::zeros({B, config_.n_embd}) : Tensor());
  }
  return cache;
}

}  // namespace bary
