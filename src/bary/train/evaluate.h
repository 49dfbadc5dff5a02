// SPDX-License-Identifier: Apache-2.0
// Loss of a model on held-out text: sums over targets in a fixed order, so it does not depend on how the text was cut
// into batches, on threads, or on when it runs; it never touches the streams of training.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "bary/model/language_model.h"
#include "bary/text/batch.h"

namespace bary {

struct Evaluation {
  double loss_sum = 0;  // nats
  int64_t tokens = 0;   // targets
  int64_t bytes = 0;    // that the targets stand for; 0 = not known
  // Of pairs and masked tokens: targets that the model would have chosen, sequences, and those chosen throughout. A
  // target is chosen throughout, given itself so far, exactly when greedy decoding writes it.
  int64_t right = 0, sequences = 0, exact = 0;
  double loss() const;           // nats a token
  double perplexity() const;     // exp of it
  double bits_per_byte() const;  // loss_sum / ln 2 / bytes; 0 if bytes are not known
  double accuracy() const;       // right / tokens
  double exact_match() const;    // exact / sequences
};

// "val_loss", "val_perplexity", "val_bits_per_byte", "val_accuracy", "val_exact_match" for a prefix of "val"; null
// where there was nothing to count.
nlohmann::json to_json(const Evaluation& e, const std::string& prefix);

using EvaluationProgress = std::function<void(int64_t done, int64_t total)>;  // windows

// All non-overlapping windows of block_size tokens, each predicting its next token.
Evaluation evaluate_all(const LanguageModel& model, TokenSpan tokens, std::span<const int32_t> bytes_of_token,
                        bool full_windows_only, const EvaluationProgress& progress = {});

// `count` fixed windows named by `seed`: the same at every evaluation of every run.
Evaluation evaluate_some(const LanguageModel& model, TokenSpan tokens, std::span<const int32_t> bytes_of_token,
                         int64_t count, uint64_t seed);

}  // namespace bary
