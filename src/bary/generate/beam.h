// SPDX-License-Identifier: Apache-2.0
// The best continuations of sources, by beam search over a model of pairs: of every source the `beam` likeliest
// beginnings grow by a token at a time; what ends is set aside (Sutskever et al. 2014; the length penalty as Wu et al.
// 2016 have it in spirit: score = log p / length^penalty). A beam of one is greedy decoding. What a source gives does
// not depend on its neighbours, on padding, or on threads, to the bit.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "bary/model/seq2seq.h"

namespace bary {

struct BeamOptions {
  int64_t beam = 1, n_best = 1;
  // Of a target, its end not counted; 0: the window trained at, or twice the source and 16 more where that is longer.
  // Either way as far as a learned table of positions goes.
  int64_t max_tokens = 0;
  double length_penalty = 0;    // 0: by log p alone; 1: by its mean over the tokens
  int64_t no_repeat_ngram = 0;  // no so many tokens in a row twice; 0: anything goes
  PairTokens tokens;
  std::vector<int32_t> never;  // tokens that are not written
  int64_t together = 32;       // sources a pass; never changes a result
  // Calls of these two do not overlap; they come from the threads that search, which wait meanwhile.
  std::function<void(size_t source, int32_t token)> on_token;  // of greedy decoding (a beam of one), as they come
  std::function<bool()> cancelled;                             // asked between tokens: what is there is returned
};

struct Hypothesis {
  std::vector<int32_t> ids;    // without bos and eos
  double log_probability = 0;  // nats, of the tokens and (if it ended) the end: what teacher forcing says, to the bit
  double score = 0;            // with the length penalty
  bool ended = false;          // not: max_tokens came first
};

// n_best hypotheses of every source, those that ended first, then by score. Throws on an empty source, on a beam below
// one or below n_best, and where a learned table of positions ends before the source does.
std::vector<std::vector<Hypothesis>> beam_search(Seq2Seq& model, std::span<const std::vector<int32_t>> sources,
                                                 const BeamOptions& options);

// Tokens of an answer at most: `asked`, or where that is 0 the window trained at, or twice the source and 16 more.
int64_t longest_answer(const ModelConfig& c, int64_t asked, int64_t source);

// Of a row of logits, in the terms of the loss (kernel/loss.h). Throws where they are not finite.
std::vector<double> log_softmax(const Tensor& logits, int64_t row);

// log p(target | source) of every pair of a batch, in nats.
std::vector<double> log_probabilities(const Seq2Seq& model, const PairBatch& batch);

}  // namespace bary
