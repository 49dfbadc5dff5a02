// SPDX-License-Identifier: Apache-2.0
// The two halves of the encoder-decoder experiment: what is trained and measured, and what is said of it.
#pragma once
#include "bary/lab/experiment.h"
#include "bary/lab/training.h"

namespace bary::lab {

inline constexpr const char* kPairTasks[] = {"copy", "reverse", "sort"};
inline constexpr int64_t kShortest = 3, kLongest = 20, kLonger = 30;  // letters: trained on 3 to 20, tried on 21 to 30
inline constexpr int64_t kDrawn = 12;                                 // letters of the sequence that is drawn

struct Arrangement {
  const char* name;
  bool line = false, prefix = false;  // one stack reads source and target in a line
  ModelConfig model() const;
};
inline constexpr Arrangement kArrangements[] = {
    {"encoder-decoder"}, {"decoder-only", true, false}, {"prefix mask", true, true}};
inline std::string pair_row(const Arrangement& a, const std::string& task) { return std::string(a.name) + " " + task; }

std::vector<Claim> encoder_decoder_claims();
Findings judge_encoder_decoder(const Rows& rows, const Plan& plan);

}  // namespace bary::lab
