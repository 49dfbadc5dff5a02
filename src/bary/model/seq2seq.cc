// SPDX-License-Identifier: Apache-2.0
#include "bary/model/seq2seq.h"

#include "bary/base/parallel.h"
#include "bary/model/encoder_decoder.h"
#include "bary/model/recurrent_seq2seq.h"

namespace bary {

void Seq2Seq::make_head(const Tensor& tokens) {
  if (config_.tie_embeddings) {
    lm_head_.weight = tokens;
  } else {
    lm_head_ = Linear(root().in("lm_head", "unembed"), config_.n_embd, config_.vocab_size, config_.head_bias);
  }
}

Tensor Seq2Seq::head(const Tensor& hidden) const {
  FlushDenormals flush;
  return lm_head_(hidden);
}

Tensor Seq2Seq::logits(const PairBatch& batch, const Pass& pass) const {
  const Memory memory = encode(batch.source, pass);
  Pass reading = pass;
  reading.memory = &memory;
  return head(decode(batch.inputs.ids, batch.inputs.B(), reading));
}

LossSum Seq2Seq::loss(const PairBatch& batch, const Pass& pass, const LossOptions& options) const {
  FlushDenormals flush;
  const Memory memory = encode(batch.source, pass);
  Pass reading = pass;
  reading.memory = &memory;
  Tensor rows = decode(batch.inputs.ids, batch.inputs.B(), reading);
  return linear_cross_entropy(rows, lm_head_.weight, lm_head_.bias, batch.targets, options);
}

std::unique_ptr<Seq2Seq> make_seq2seq(const ModelConfig& c, uint64_t seed) {
  BARY_CHECK(c.has_source(),
             "arch={} has no source, and pairs of texts need one; choose encoder-decoder, rnn, lstm or "
             "gru and give source_vocab_size",
             arch_name(c));
  if (c.recurrent()) return std::make_unique<RecurrentSeq2Seq>(c, seed);
  return std::make_unique<EncoderDecoder>(c, seed);
}

}  // namespace bary
