// SPDX-License-Identifier: Apache-2.0
// Pairs of texts as tokens, and the pairs of every update.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "bary/model/seq2seq.h"
#include "bary/text/pairs.h"
#include "bary/train/checkpoint.h"

namespace bary {

struct PairDataOptions {
  std::string tokenizer = "char";  // of both sides: char (every character of the pairs), byte, or a tokenizer.json
  std::string source_tokenizer;    // of the source alone, the same words; empty: one for both
};

// How the pairs of an update are chosen: so many, drawn with replacement; or, with a budget, sixteen times as many as
// fit are drawn and sorted by length, cut into batches of at most `tokens` (pairs times the longest side), and one of
// these is taken, each as likely. Either way an update is named by (seed, its number) alone.
struct UpdateSize {
  int64_t pairs = 64, tokens = 0;
};

class PairData {
 public:
  // `given`: of a checkpoint to go on from. Refuses a tokenizer without the three special tokens.
  PairData(std::shared_ptr<const PairTask> task, const PairDataOptions& options, const Tokenizers& given = {});

  const PairTask& task() const { return *task_; }
  const Tokenizer& target() const { return *tokenizers_.text; }
  const Tokenizer& source() const { return tokenizers_.source ? *tokenizers_.source : *tokenizers_.text; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  const PairTokens& tokens() const { return tokens_; }  // of the target's side

  CodedPair coded(const TextPair& pair) const;
  std::vector<CodedPair> update(uint64_t seed, int64_t it, const UpdateSize& size) const;
  // `count` fixed pairs named by `seed`, drawn with replacement; 0: all of a held-out list of at most 10,000, and of a
  // longer one, of pairs without end and of those learned from 1,000 draws.
  std::vector<CodedPair> fixed(PairSplit split, int64_t count, uint64_t seed) const;

 private:
  std::shared_ptr<const PairTask> task_;
  Tokenizers tokenizers_;
  PairTokens tokens_;
};

std::vector<std::string> pair_specials();            // "<pad>", "<bos>", "<eos>"
PairTokens pair_tokens(const Tokenizer& tokenizer);  // refuses one that lacks any of them
std::vector<int32_t> source_tokens(const Tokenizer& tokenizer, std::string_view text);  // with <eos>

}  // namespace bary
