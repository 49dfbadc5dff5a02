// SPDX-License-Identifier: Apache-2.0
// The arrangement of Vaswani et al. 2017: a source stack that sees all of its text, and a causal target stack whose
// blocks also read the source.
//   memory = encoder(source);  logits = decoder(target; memory) W^T + b        (B,S), (B,T) -> (B,T,V)
#pragma once
#include "bary/model/seq2seq.h"
#include "bary/model/stack.h"

namespace bary {

class EncoderDecoder : public Seq2Seq {
 public:
  EncoderDecoder(const ModelConfig& config, uint64_t seed);
  Memory encode(const Padded& source, const Pass& pass = {}) const override;
  Tensor decode(std::span<const int32_t> ids, int64_t B, const Pass& pass) const override;
  KvCache make_cache(int64_t B, int64_t capacity) const override;
  void ensure_positions(int64_t source, int64_t target) override;

 private:
  Stack decoder_, encoder_;
};

}  // namespace bary
