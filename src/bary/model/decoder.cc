// SPDX-License-Identifier: Apache-2.0
#include "bary/model/decoder.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"
#include "bary/tensor/tap.h"

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

BlockConfig block_config(const ModelConfig& c, int64_t layer) {
  BlockConfig b;
  b.attention = {c.n_embd, c.n_head,   c.heads_kv(), c.head_width(), c.mask,    c.window, c.pos,
                 c.scale,  c.qkv_bias, c.attn_proj,  c.bias,         c.dropout, layer};
  b.norm = c.norm, b.norm_kind = c.norm_kind, b.mixer = c.mixer, b.mlp = c.mlp, b.mlp_width = c.mlp_width();
  b.residual = c.residual, b.bias = c.bias, b.norm_eps = c.norm_eps, b.dropout = c.dropout, b.layer = layer;
  return b;
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, uint64_t seed) : config_(config) {
  config.check();
  parameters_ = std::make_unique<Parameters>(seed);
  const ModelConfig& c = config_;
  Scope root{parameters_.get(), "", "", c.init, std::max<int64_t>(c.n_layer, 1)};
  Scope body = root.in("transformer", "");
  body.hook = "";
  wte_ = Embedding(body.in("wte", "embed"), c.vocab_size, c.n_embd);
  if (c.pos == Position::learned) wpe_ = Embedding(body.in("wpe", "pos_embed"), c.positions(), c.n_embd);
  ensure_positions(c.positions());
  for (int64_t i = 0; i < c.n_layer; ++i) {
    std::string n = std::to_string(i);
    blocks_.emplace_back(body.in("h." + n, "blocks." + n), block_config(c, i));
  }
  if (c.final_norm()) ln_f_ = Norm(body.in("ln_f", "ln_final"), c.n_embd, c.norm_kind, c.bias, c.norm_eps);
  if (c.tie_embeddings) {
    lm_head_.weight = wte_.weight;
  } else {
    lm_head_ = Linear(root.in("lm_head", "unembed"), c.n_embd, c.vocab_size, c.head_bias);
  }
}

void Decoder::ensure_positions(int64_t n) {
  const ModelConfig& c = config_;
  BARY_CHECK(
      c.pos != Position::learned || n <= c.positions(),
      "this model learned {} positions and {} are asked for; shorten the prompt or the generation, or train with a "
      "larger context (or with pos=rotary or alibi, which have no table to end)",
      c.positions(), n);
  if (c.pos == Position::sinusoidal && (!sinusoids_.defined() || sinusoids_.dim(0) < n))
    sinusoids_ = sinusoidal_table(n, c.n_embd);
  if (c.pos == Position::rotary && (!rotary_ || rotary_->positions < n))
    rotary_ = std::make_unique<RotaryTable>(n, c.head_width(), c.rotary());
}

Tensor Decoder::embed(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  const Tensor& positions = config_.pos == Position::learned ? wpe_.weight : sinusoids_;
  Tensor x = embedding(ids, B, wte_.weight, positions, pass.first());
  return tap("hook_embed", dropout(x, drop_site(config_.dropout, pass, 0, DropSite::embedding), {pass.sequence, 0}));
}

Tensor Decoder::hidden(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  FlushDenormals flush;  // as in every worker
  const int64_t T = B > 0 ? static_cast<int64_t>(ids.size()) / B : 0;
  if (pass.cache) {
    BARY_CHECK(pass.first() + T <= pass.cache->capacity,
               "the cache holds {} positions and {} more come, its room is {}; make "
               "a larger cache",
               pass.first(), T, pass.cache->capacity);
  }
  Tensor x = embed(ids, B, pass);
  for (const Block& block : blocks_) x = block(x, pass, rotary_.get());
  if (pass.cache) pass.cache->length += T;
  return config_.final_norm() ? ln_f_(x) : x;
}

Tensor Decoder::head(const Tensor& hidden) const {
  FlushDenormals flush;
  return lm_head_(hidden);
}

Tensor Decoder::logits(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  return head(hidden(ids, B, pass));
}

LossSum Decoder::loss(std::span<const int32_t> ids, std::span<const int32_t> targets, int64_t B, const Pass& pass,
                      float weight) const {
  FlushDenormals flush;
  return linear_cross_entropy(hidden(ids, B, pass), lm_head_.weight, lm_head_.bias, targets, weight);
}

KvCache Decoder::make_cache(int64_t B, int64_t capacity) const {
  BARY_CHECK(config_.causal(),
             "a cache needs a causal model: this one was built with mask=full, where every position sees "
             "the whole text; run it without a cache");
  KvCache cache;
  cache.capacity = capacity;
  for (int64_t i = 0; i < config_.n_layer; ++i) {
    bool attends = config_.mixer == Mixer::attention;
    cache.attention.push_back(
        attends ? std::make_unique<KeyValues>(B, config_.heads_kv(), config_.head_width(), capacity) : nullptr);
    cache.average.push_back(config_.mixer == Mixer::average ? Tensor::zeros({B, config_.n_embd}) : Tensor());
  }
  return cache;
}

std::vector<std::string> copy_parameters(const Parameters& from, Parameters& to) {
  std::vector<std::string> left;
  for (const Parameter& p : to.list()) {
    const Parameter* q = from.find(p.name);
    if (!q || q->shape != p.shape) {
      left.push_back(p.name);
      continue;
    }
    auto source = from.values_of(*q);
    std::copy(source.begin(), source.end(), to.values_of(p).begin());
  }
  to.changed();
  return left;
}

}  // namespace bary
