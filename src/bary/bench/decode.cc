// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/decode.h"

#include "bary/base/clock.h"
#include "bary/generate/generate.h"
#include "bary/model/count.h"

namespace bary {

DecodeFigures measure_decode(LanguageModel& model, int64_t tokens, int64_t runs) {
  const ModelConfig& c = model.config();
  model.ensure_positions(tokens + 1);
  DecodeFigures f;
  const ParameterCount count = count_parameters(c);
  f.weight_bytes = 4 * (count.total - (c.tie_embeddings ? 0 : count.embeddings));
  for (int64_t run = 0; run < runs; ++run) {
    KvCache cache = model.make_cache(1, tokens + 1);
    std::vector<int32_t> ids = {0};
    std::vector<float> logits = next_logits(model, ids, &cache, 0);
    Stopwatch watch;
    for (int64_t n = 0; n < tokens; ++n) {
      RandomStream random(1, Purpose::sample, static_cast<uint64_t>(n), static_cast<uint64_t>(run));
      ids.push_back(sample_token(logits, c.vocab_size, ids, {}, random));
      logits = next_logits(model, std::span<const int32_t>(ids).last(1), &cache, 0);
    }
    f.seconds_a_token.push_back(watch.seconds() / static_cast<double>(tokens));
  }
  return f;
}

}  // namespace bary
