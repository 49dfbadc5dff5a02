// SPDX-License-Identifier: Apache-2.0
// What a run learns from: a text with the tokenizer that codes it (learned on the text itself unless one is given), or
// a folder of token files.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bary/text/batch.h"
#include "bary/text/corpus.h"
#include "bary/text/token_file.h"
#include "bary/text/tokenizer.h"

namespace bary {

struct DataOptions {
  std::string dataset, corpus, tokenizer = "bpe", ties = "first";
  int64_t vocab_size = 1024;  // asked for; the tokenizer's own decides
  double val_fraction = 0.1;
  bool mask = false;  // a masked language model's: the tokenizer must have a token to hide others with
  std::function<void(const std::string&)> notice;
};

bool is_token_folder(const std::string& path);  // it holds train.bin

class TrainData {
 public:
  TrainData() = default;
  TrainData(TrainData&&) = default;  // a copy's spans would point into the original's ids
  TrainData& operator=(TrainData&&) = default;
  // `given`: the tokenizer of a checkpoint to go on from.
  static TrainData load(const DataOptions& options, const std::optional<Tokenizer>& given);

  TokenSpan train, val;
  std::optional<Tokenizer> tokenizer;  // token files may come without
  std::optional<int32_t> mask_token;   // kMaskToken, with DataOptions::mask
  int64_t vocab_size = 0;
  std::string name, source, sha256;
  int64_t bytes = 0;                    // of the text; 0 with token files
  std::vector<int32_t> bytes_of_token;  // empty without a tokenizer

 private:
  std::vector<int32_t> ids_;
  std::shared_ptr<TokenFolder> files_;
};

// options.tokenizer by name (bpe, byte, char) learned on the corpus, or read from a tokenizer.json.
Tokenizer make_tokenizer(const DataOptions& options, const Corpus& corpus);

}  // namespace bary
