// SPDX-License-Identifier: Apache-2.0
#include "bary/model/encoder_decoder.h"

namespace bary {

EncoderDecoder::EncoderDecoder(const ModelConfig& c, uint64_t seed)
    : Seq2Seq(c, seed),
      decoder_(root() / "decoder", c, {c.vocab_size, c.n_layer, c.mask, /*cross*/ true, /*first_layer*/ 0, ""}),
      encoder_(root() / "encoder", c,
               {c.source_vocab_size, c.encoder_layers(), Mask::full, /*cross*/ false, /*first_layer*/ c.n_layer, "",
                c.share_embeddings ? decoder_.tokens() : Tensor()}) {
  make_head(decoder_.tokens());
}

Memory EncoderDecoder::encode(const Padded& source, const Pass& pass) const {
  Pass mine = pass;
  mine.cache = nullptr, mine.lengths = source.lengths;
  return {encoder_(source.ids, source.B(), mine), source.lengths, {}};
}

Tensor EncoderDecoder::decode(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  return decoder_(ids, B, pass);
}

KvCache EncoderDecoder::make_cache(int64_t B, int64_t capacity) const { return decoder_.make_cache(B, capacity); }

void EncoderDecoder::ensure_positions(int64_t source, int64_t target) {
  encoder_.ensure_positions(source);
  decoder_.ensure_positions(target);
}

}  // namespace bary
