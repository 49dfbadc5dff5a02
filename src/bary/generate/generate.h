// SPDX-License-Identifier: Apache-2.0
// Text from a model: one token a pass, earlier positions kept in a cache that changes the cost and not one bit. Several
// prompts run side by side; each is named by its index in the random streams, so its text does not depend on the
// others.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bary/generate/sampler.h"
#include "bary/model/language_model.h"
#include "bary/text/tokenizer.h"

namespace bary {

struct GenerateOptions {
  int64_t max_new_tokens = 200;
  SamplerOptions sampler;
  uint64_t seed = 1337;
  std::vector<std::string> stop;      // the text ends before the first of these
  std::optional<int32_t> stop_token;  // and at this token
  int64_t prefill_chunk = 0;          // prompt tokens a pass; 0 = all at once
  bool cache = true;                  // off: the whole text again for each token (the same bits, slower)
  // Text as it becomes certain: whole characters, and nothing that may become a stop string.
  std::function<void(size_t prompt, const std::string& text)> on_text;
  std::function<bool()> cancelled;  // asked between tokens
  // Calls of these two do not overlap. They come from the threads that generate: one that waits for another thread
  // which uses bary waits for ever.
};

enum class Finish { length, stop, context, cancelled };

struct Generated {
  std::vector<int32_t> ids;  // new ones
  std::string text;          // without the stop string; bytes that are no UTF-8 are shown as U+FFFD, `ids` has them
  Finish finish = Finish::length;
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0, generation_seconds = 0;
};

// An empty prompt becomes the tokenizer's start token; without one it is an Error, as are a prompt longer than a table
// of learned positions and an encoder, which fills gaps (generate/fill.h) and goes on from nothing. Generation that
// reaches the end of that table stops with Finish::context. Several threads may share a model that nobody trains or
// edits meanwhile; the cores serve one call after the other.
std::vector<Generated> generate(LanguageModel& model, const Tokenizer& tokenizer,
                                const std::vector<std::string>& prompts, const GenerateOptions& options);

// Keys and values of one text of so many positions, in numbers; 0 where what is kept does not grow.
double cache_numbers(const ModelConfig& c, int64_t positions);
// Refuses keys and values of so many texts that could not be held: over 16 GB at once, a text of each thread.
void check_cache_memory(const ModelConfig& c, int64_t texts, int64_t positions);

// Logits (1,1,V) of the last row of hidden() (B,T,C)
Tensor last_logits(const LanguageModel& model, const Tensor& hidden);

// The last row of logits of `ids`, through the cache in chunks of `chunk` tokens (0 = all at once).
std::vector<float> next_logits(const LanguageModel& model, std::span<const int32_t> ids, KvCache* cache, int64_t chunk);

}  // namespace bary
