// SPDX-License-Identifier: Apache-2.0
// A model of one text: tokens -> a stack -> logits over the vocabulary. What the stack may see makes it a decoder (what
// comes next) or an encoder (what is missing); its layers are blocks, or recurrent.
//   logits = stack(id) W^T + b,  W = E if tied                                                    (B,T) -> (B,T,V)
// Several threads may read one model at once, ensure_positions included; training and edits of its parameters are not
// reading. A cache belongs to one thread.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "bary/model/model.h"
#include "bary/model/recurrent_side.h"
#include "bary/model/stack.h"

namespace bary {

class LanguageModel : public Model {
 public:
  LanguageModel(const ModelConfig& config, uint64_t seed);

  // B sequences of one length, side by side in `ids`.
  Tensor hidden(std::span<const int32_t> ids, int64_t B, const Pass& pass = {}) const;  // (B,T,C), after the final norm
  Tensor logits(std::span<const int32_t> ids, int64_t B, const Pass& pass = {}) const;  // (B,T,V)
  // weight * sum of -log p(target); targets of -1 are not counted. The (B,T,V) logits never exist at once.
  LossSum loss(std::span<const int32_t> ids, std::span<const int32_t> targets, int64_t B, const Pass& pass = {},
               const LossOptions& options = {}) const;

  // A cache for B sequences of up to `capacity` positions; only causal models with every position before it known.
  KvCache make_cache(int64_t B, int64_t capacity) const;
  Tensor head(const Tensor& hidden) const;  // logits of rows of hidden()
  void ensure_positions(int64_t n) {        // see Stack; a recurrent state has no end
    if (stack_) stack_->ensure_positions(n);
  }

 private:
  std::unique_ptr<Stack> stack_;  // one of the two
  std::unique_ptr<RecurrentSide> recurrent_;
  Linear lm_head_;
};

}  // namespace bary
