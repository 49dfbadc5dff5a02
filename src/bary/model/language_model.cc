// SPDX-License-Identifier: Apache-2.0
#include "bary/model/language_model.h"

#include "bary/base/parallel.h"

namespace bary {

LanguageModel::LanguageModel(const ModelConfig& config, uint64_t seed) : Model(config, seed) {
  const ModelConfig& c = config_;
  BARY_CHECK(!c.has_source(),
             "a language model has one text and this configuration has a source (arch={}); it is for "
             "pairs of texts",
             arch_name(c));
  Scope body = root().in("transformer", "");
  body.hook = "";
  if (c.recurrent()) {
    recurrent_ = std::make_unique<RecurrentSide>(body, c, c.vocab_size, c.n_layer, 0);
  } else {
    StackSide side;
    side.vocab_size = c.vocab_size, side.n_layer = c.n_layer, side.mask = c.seen();
    stack_ = std::make_unique<Stack>(body, c, side);
  }
  if (c.tie_embeddings) {
    lm_head_.weight = stack_ ? stack_->tokens() : recurrent_->wte.weight;
  } else {
    lm_head_ = Linear(root().in("lm_head", "unembed"), c.n_embd, c.vocab_size, c.head_bias);
  }
}

Tensor LanguageModel::hidden(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  return stack_ ? (*stack_)(ids, B, pass) : (*recurrent_)(ids, B, {}, pass).y;
}

Tensor LanguageModel::head(const Tensor& hidden) const {
  FlushDenormals flush;
  return lm_head_(hidden);
}

Tensor LanguageModel::logits(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  return head(hidden(ids, B, pass));
}

LossSum LanguageModel::loss(std::span<const int32_t> ids, std::span<const int32_t> targets, int64_t B, const Pass& pass,
                            const LossOptions& options) const {
  FlushDenormals flush;
  return linear_cross_entropy(hidden(ids, B, pass), lm_head_.weight, lm_head_.bias, targets, options);
}

KvCache LanguageModel::make_cache(int64_t B, int64_t capacity) const {
  BARY_CHECK(config_.causal(),
             "a cache needs a causal model: this one was built with mask=full, where every position sees "
             "the whole text; run it without a cache");
  if (stack_) return stack_->make_cache(B, capacity);
  KvCache cache;
  cache.capacity = capacity;
  return cache;
}

}  // namespace bary
