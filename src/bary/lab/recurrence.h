// SPDX-License-Identifier: Apache-2.0
// The parts of the recurrence experiment: what is measured without training, what is trained, and what is said of it.
#pragma once
#include <functional>

#include "bary/lab/experiment.h"
#include "bary/model/language_model.h"

namespace bary::lab {

struct Network {
  const char* name;
  Arch arch;
  int64_t width;             // of about 477,696 parameters with a vocabulary of 1,024: as many as the chapter's block
  bool open_forget = false;  // the forget gate's bias begins at 1 (Gers et al. 2000)
  bool trained = true;       // on the text
};
inline constexpr Network kNetworks[] = {{"tanh", Arch::rnn, 195},
                                        {"LSTM", Arch::lstm, 147},
                                        {"LSTM, forget bias 1", Arch::lstm, 147, true, false},
                                        {"GRU", Arch::gru, 159},
                                        {"attention", Arch::decoder, 128}};
inline std::string start_row(const Network& n) { return std::string("start ") + n.name; }
inline std::string text_row(const Network& n) { return std::string("text ") + n.name; }

inline constexpr int64_t kFrom = 5, kTo = 500;  // tokens, the first is 1
inline constexpr double kReach = 1e-3;          // of the norm at the shortest length
inline constexpr int64_t kLengths[] = {4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};  // T of the gradients
inline constexpr int64_t kTimed = 512, kTimedWidth = 128;

// For each T up to `longest`: |d loss_T / d x_1|, x_1 the embedding of the first token, mean over `sequences` of at
// least longest + 1 tokens. Row fields "lengths" and "norms".
void add_gradient_norms(nlohmann::json& row, const LanguageModel& model,
                        const std::vector<std::vector<int32_t>>& sequences, int64_t longest);
// The T at which the norm falls below kReach of that at the first length: between two lengths on the straight line
// through their logarithms, the last length where it never does. NaN without rows.
double reach(const std::vector<double>& lengths, const std::vector<double>& norms);

// As it is made, width 128, random tokens: gradient norms, and what is left of another token 5 at the tokens after it
nlohmann::json at_start(const Network& n, uint64_t seed, const Work& work);
// Milliseconds a token, forward and backward, of one layer of each kind against T
nlohmann::json times(bool lstm, const Work& work);

std::vector<Claim> recurrence_claims();
Findings judge_recurrence(const Rows& rows, const Plan& plan);

inline constexpr const char* kBridges[] = {"one vector", "additive", "dot"};
inline constexpr int64_t kCopied[] = {4, 8, 12, 16, 20, 24};  // letters

}  // namespace bary::lab
