// SPDX-License-Identifier: Apache-2.0
// Sequence to sequence as it was before attention was all there is: a recurrent encoder, whose last state is where a
// recurrent decoder begins (Sutskever et al. 2014; Cho et al. 2014). That state is the only bridge, unless the decoder
// attends: each of its states then reads all of the encoder's (scores additive as Bahdanau et al. 2015 have them, or
// dot products), after the cell as Luong et al. 2015 place it, so that a whole target is one pass:
//   a_tj = softmax_j score(s_t, h_j);  s~_t = tanh([s_t ; sum_j a_tj h_j] W^T + b)
#pragma once
#include <optional>

#include "bary/model/recurrent_side.h"
#include "bary/model/seq2seq.h"

namespace bary {

struct SourceAttention {
  SourceAttention(const Scope& s, Attend kind, int64_t C);
  // states (B,T,C) of the target over the source's (B,S,C), of which memory.lengths count
  Tensor operator()(const Tensor& states, const Memory& memory) const;

  Attend kind;
  std::string pattern_tap;
  Linear query, key, join;
  Tensor v;
};

class RecurrentSeq2Seq : public Seq2Seq {
 public:
  RecurrentSeq2Seq(const ModelConfig& config, uint64_t seed);
  Memory encode(const Padded& source, const Pass& pass = {}) const override;
  Tensor decode(std::span<const int32_t> ids, int64_t B, const Pass& pass) const override;
  KvCache make_cache(int64_t B, int64_t capacity) const override;
  void ensure_positions(int64_t, int64_t) override {}  // a state has no end

 private:
  RecurrentSide decoder_, encoder_;
  std::optional<SourceAttention> attend_;
};

}  // namespace bary
