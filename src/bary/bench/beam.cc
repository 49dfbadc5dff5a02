// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/beam.h"

#include "bary/base/clock.h"
#include "bary/base/random.h"

namespace bary {

BeamBench::BeamBench(const ModelConfig& config, int64_t sources, int64_t beam, int64_t tokens, uint64_t seed)
    : model_(make_seq2seq(config, seed)) {
  BARY_CHECK(config.vocab_size > 3 && config.source_vocab_size > 3,
             "bench beam: vocabularies of {} and {}; three tokens are special, give more", config.vocab_size,
             config.source_vocab_size);
  RandomStream random(seed, Purpose::test);
  for (int64_t i = 0; i < sources; ++i) {
    sources_.emplace_back(3 + random.below(18));
    for (int32_t& id : sources_.back())
      id = static_cast<int32_t>(3 + random.below(static_cast<uint64_t>(config.source_vocab_size - 3)));
  }
  options_.beam = beam, options_.max_tokens = tokens;
  options_.never = {options_.tokens.pad, options_.tokens.bos, options_.tokens.eos};
}

double BeamBench::run_one() {
  Stopwatch watch;
  beam_search(*model_, sources_, options_);
  return watch.seconds();
}

}  // namespace bary
