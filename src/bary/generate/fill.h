// SPDX-License-Identifier: Apache-2.0
// What an encoder puts into the gaps of a text (the cloze task of Devlin et al. 2019, section 3.1).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bary/model/language_model.h"
#include "bary/text/tokenizer.h"

namespace bary {

struct FillOptions {
  int64_t top_k = 5;  // proposals for each gap; more than there are tokens: all
};

struct Proposal {
  int32_t id = 0;
  std::string text;        // the token's bytes, its space included
  double probability = 0;  // by the kernels' softmax over all tokens of the tokenizer
};

struct Gap {
  int64_t position = 0;             // in Filled::ids
  std::vector<Proposal> proposals;  // likeliest first, ties to the lowest id; never a special token
};

struct Filled {
  std::vector<int32_t> ids;  // of the text, the mask standing in every gap
  std::vector<Gap> gaps;
  std::string text;  // bytes: the text with the likeliest token in every gap, and nothing else changed
};

// Every [MASK] of the text is one gap and stands for one token. All are filled from one pass, so no gap knows what was
// put into another. Where the tokenizer's words begin with their space (byte-level BPE), a space before [MASK] is part
// of the gap, as it was in training, and only tokens that begin with a space are proposed: the text keeps it.
// Refused: an empty text, one without [MASK], one longer than a table of learned positions, a tokenizer without [MASK],
// a model that is no encoder. A logit that is not finite is a numeric Error.
Filled fill(LanguageModel& model, const Tokenizer& tokenizer, const std::string& text, const FillOptions& options = {});

}  // namespace bary
