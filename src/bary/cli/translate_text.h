// SPDX-License-Identifier: Apache-2.0
// Texts through a model of pairs: tokens in, tokens out.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bary/generate/beam.h"
#include "bary/generate/line.h"
#include "bary/text/tokenizer.h"
#include "bary/train/checkpoint.h"
#include "bary/train/pair_data.h"

namespace bary {

struct Sides {
  Seq2Seq& model;
  const Tokenizer &source, &target;
};
// The hypotheses for every text; special tokens are never written. An empty text is an Error that names its number.
std::vector<std::vector<Hypothesis>> translate(const Sides& sides, const std::vector<std::string>& sources,
                                               BeamOptions options);

// Through one stack that learned pairs as lines: what is likeliest, token by token; one hypothesis each.
struct OneStack {
  LanguageModel& model;
  const Tokenizer& tokenizer;
  bool prefix = false;
};
std::vector<std::vector<Hypothesis>> translate(const OneStack& stack, const std::vector<std::string>& sources,
                                               LineOptions options);
bool reads_prefix(const LoadedModel& m);  // as its checkpoint says

// "source -> answer", and the target where it is another, of `count` held-out pairs
using Answer = std::function<std::vector<std::vector<Hypothesis>>(const std::vector<std::string>& sources)>;
std::vector<std::string> sample_pairs(const PairData& data, uint64_t seed, int64_t count, const Answer& answer);

}  // namespace bary
