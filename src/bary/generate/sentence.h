// SPDX-License-Identifier: Apache-2.0
// One vector for a whole text, from what a model makes of its tokens.
//   mean:  v = (h_0 + ... + h_{n-1}) / n        first:  v = h_0,      h = hidden(tokens), after the final norm
// Nothing was trained on these vectors: cosines order texts within one model, their values mean nothing by themselves.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bary/model/language_model.h"
#include "bary/text/tokenizer.h"

namespace bary {

enum class Pooling { mean, first };

struct SentenceOptions {
  Pooling pooling = Pooling::mean;
  int64_t batch_tokens = 8192;  // most of a pass, padding included; a longer text has a pass of its own
};

struct Sentence {
  std::vector<int32_t> ids;
  std::vector<float> vector;  // C
};

// In the order of the texts; special tokens in them are ordinary text. A vector has the same bits alone, in any company
// and with any batch_tokens. Any model of one text has means; first is an encoder's only, since the first token of a
// causal model has seen nothing but itself.
// Refused, with the text's number: an empty text, one longer than a table of learned positions.
std::vector<Sentence> sentence_vectors(LanguageModel& model, const Tokenizer& tokenizer,
                                       const std::vector<std::string>& texts, const SentenceOptions& options = {});

// a.b / (|a| |b|) in double, within [-1, 1]; of a vector and itself exactly 1. Refused: vectors of zeros, which have no
// direction, of other lengths, and numbers that are not finite.
double cosine(std::span<const float> a, std::span<const float> b);

}  // namespace bary
