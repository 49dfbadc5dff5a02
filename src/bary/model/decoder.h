// SPDX-License-Identifier: Apache-2.0
// The decoder-only model: tokens (+ positions) -> blocks -> (final norm) -> logits over the vocabulary.
//   x = E[id] (+ P[t]);  x = block_i(x);  logits = norm(x) W^T + b,  W = E if tied                 (B,T) -> (B,T,V)
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "bary/model/config.h"

namespace bary {

class Decoder {
 public:
  // Every parameter's first value is keyed by (seed, its name).
  Decoder(const ModelConfig& config, uint64_t seed);

  // B sequences of one length, side by side in `ids`.
  Tensor hidden(std::span<const int32_t> ids, int64_t B, const Pass& pass = {}) const;  // (B,T,C), after the final norm
  Tensor logits(std::span<const int32_t> ids, int64_t B, const Pass& pass = {}) const;  // (B,T,V)
  // weight * sum of -log p(target); targets of -1 are not counted. The (B,T,V) logits never exist at once.
  LossSum loss(std::span<const int32_t> ids, std::span<const int32_t> targets, int64_t B, const Pass& pass = {},
               float weight = 1) const;

  // A cache for B sequences of up to `capacity` positions; only causal models with every position before it known.
  KvCache make_cache(int64_t B, int64_t capacity) const;
  Tensor head(const Tensor& hidden) const;  // logits of rows of hidden()
  // Makes room for positions 0 .. n-1. A table of learned positions cannot grow: an Error says where it ends. Positions
  // that are computed can, whatever the results are worth beyond the window trained on.
  void ensure_positions(int64_t n);

  const ModelConfig& config() const { return config_; }
  Parameters& parameters() const { return *parameters_; }

 private:
  Tensor embed(std::span<const int32_t> ids, int64_t B, const Pass& pass) const;

  ModelConfig config_;
  std::unique_ptr<Parameters> parameters_;
  Embedding wte_, wpe_;
  Tensor sinusoids_;
  std::unique_ptr<RotaryTable> rotary_;
  std::vector<Block> blocks_;
  Norm ln_f_;
  Linear lm_head_;
};

// How a model is changed for another context or vocabulary is the caller's choice; this copies the values of all
// parameters of the same name and shape and names the rest.
std::vector<std::string> copy_parameters(const Parameters& from, Parameters& to);

}  // namespace bary
