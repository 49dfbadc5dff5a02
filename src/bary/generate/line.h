// SPDX-License-Identifier: Apache-2.0
// Answers of one stack that learned pairs as lines (source, <bos>, target, <eos>; model/pair_batch.h): it is given the
// source and <bos>, and goes on with the likeliest token until it ends.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "bary/generate/beam.h"
#include "bary/model/language_model.h"

namespace bary {

struct LineOptions {
  bool prefix = false;     // was it trained so that every token of the source sees all of it?
  int64_t max_tokens = 0;  // of an answer; 0: the window trained at, or twice the source and 16 more
  PairTokens tokens;
  std::vector<int32_t> never;             // tokens that are not written
  std::function<void(int32_t)> on_token;  // as they come
  std::function<bool()> cancelled;        // asked between tokens
};

// `source` ends with <eos>, as everywhere. What is written and its log-probability are what teacher forcing says, to
// the bit. Throws on an empty source and where a learned table of positions ends before <bos>.
Hypothesis answer_line(LanguageModel& model, std::span<const int32_t> source, const LineOptions& options);

// log p(target | source), its end included, in nats
double log_probability(LanguageModel& model, const CodedPair& pair, const LineOptions& options);

}  // namespace bary
