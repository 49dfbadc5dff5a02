// SPDX-License-Identifier: Apache-2.0
// Texts through a model of pairs: tokens in, tokens out.
#pragma once
#include <string>
#include <vector>

#include "bary/generate/beam.h"
#include "bary/text/tokenizer.h"
#include "bary/train/pair_data.h"

namespace bary {

struct Sides {
  Seq2Seq& model;
  const Tokenizer &source, &target;
};
// The hypotheses for every text; special tokens are never written. An empty text is an Error that names its number.
std::vector<std::vector<Hypothesis>> translate(const Sides& sides, const std::vector<std::string>& sources,
                                               BeamOptions options);

// "source -> answer", and the target where it is another, of `count` held-out pairs
std::vector<std::string> sample_pairs(Seq2Seq& model, const PairData& data, uint64_t seed, int64_t count);

}  // namespace bary
