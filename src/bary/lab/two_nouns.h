// SPDX-License-Identifier: Apache-2.0
// The two halves of the two-noun experiment: what is trained and measured, and what is said of it.
#pragma once
#include <memory>

#include "bary/lab/experiment.h"
#include "bary/lab/training.h"
#include "bary/text/synthetic.h"

namespace bary::lab {

// In the order of the language: four say who crosses, four what is crossed.
inline constexpr const char* kAdjectives[] = {"tired", "scared", "slow", "weak", "wet", "wide", "busy", "steep"};
inline constexpr int64_t kTired = 0, kWet = 4;
inline constexpr int64_t kFirstNounAt = 1, kSecondNounAt = 6, kAdjectiveAt = 11;  // positions in the sentence

struct Trial {
  std::string key;
  bool leaky = false;
  int64_t symbols = 16;  // nouns; of each kind in the leaky language
  Recipe recipe;
  std::unique_ptr<SyntheticLanguage> language() const;  // the recipe's seed draws which pairs are held out
};
std::vector<Trial> trials(const Plan& plan);
inline std::string leaky_row(int64_t kinds) { return fmt::format("leaky average {0} x {0}", kinds); }

std::vector<Claim> two_nouns_claims();
Findings judge_two_nouns(const Rows& rows, const Plan& plan);

}  // namespace bary::lab
