// SPDX-License-Identifier: Apache-2.0
// Pairs of token sequences as a model reads them.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "bary/nn/padded.h"

namespace bary {

struct PairTokens {  // <pad> fills up, <bos> begins a target, <eos> ends both sides
  int32_t pad = 0, bos = 1, eos = 2;
};

struct CodedPair {
  std::vector<int32_t> source;  // its tokens, then <eos>
  std::vector<int32_t> target;  // without special tokens
  int64_t longest() const { return static_cast<int64_t>(std::max(source.size(), target.size() + 1)); }
};

struct PairBatch {
  Padded source, inputs;         // inputs: a first token, then the target
  std::vector<int32_t> targets;  // of every input the next token, at last the end; -1 where there is padding
};

// Both sides padded to the longest.
PairBatch batch_of(std::span<const CodedPair> pairs, const PairTokens& tokens = {});

// One line of both: source, <bos>, target; the target's tokens and <eos> are what counts.
struct LineBatch {
  Padded inputs;
  std::vector<int32_t> targets;
  std::vector<int64_t> sources;  // tokens of each line up to <bos>, it included: what a prefix mask shows to all
};
LineBatch lines_of(std::span<const CodedPair> pairs, const PairTokens& tokens = {});

}  // namespace bary
