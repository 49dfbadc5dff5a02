// SPDX-License-Identifier: Apache-2.0
// Windows of a token sequence. T = positions of a window (block_size). A window at s needs T + 1 tokens:
//   inputs[i] = token s + i,  targets[i] = token s + i + 1,  i = 0 .. T-1
// so n tokens have n - T valid starts, 0 .. n-T-1, and T + 1 tokens have exactly one.
// The windows of training are drawn with replacement. Each is named by (seed, purpose, step, sequence), `sequence`
// numbered over the whole optimiser step; so nothing depends on how a step is split into batches, ranks or threads, on
// a resume, or on how many windows an evaluation drew.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "bary/base/random.h"
#include "bary/text/token_span.h"

namespace bary {

struct TokenSplit {
  TokenSpan train, val;
};

// How many of n things in a row are to learn from, the rest being held out: floor((1 - val_fraction) n). val_fraction
// in [0, 1), taken to nine decimals so that 0.1 means a tenth: 459,760 tokens give 413,784 and 45,976.
int64_t count_to_learn_from(int64_t n, double val_fraction);
// In order: the first count_to_learn_from tokens, then the rest.
TokenSplit split_tokens(TokenSpan tokens, double val_fraction = 0.1);

// The whole text, then the part to learn from, then the held-out part (where there is one) must each hold a window:
// T + 1 tokens. The message names both numbers.
void check_window_fits(const TokenSplit& split, int64_t block_size);

// Random windows.
class Windows {
 public:
  // `what` stands in messages ("the training part"). Throws when there are fewer than block_size + 1 tokens.
  Windows(TokenSpan tokens, int64_t block_size, std::string_view what = "the text");

  int64_t block_size() const { return block_size_; }
  int64_t starts() const { return tokens_.size() - block_size_; }
  int64_t start_of(uint64_t seed, Purpose purpose, uint64_t step, uint64_t sequence) const;

  // Training: (seed, Purpose::batch, step, sequence). Fixed windows of an evaluation during a run:
  // (eval_seed, Purpose::eval_batch, 0, sequence). Both spans have block_size elements.
  void window(uint64_t seed, Purpose purpose, uint64_t step, uint64_t sequence, std::span<int32_t> inputs,
              std::span<int32_t> targets) const;
  void window_at(int64_t start, std::span<int32_t> inputs, std::span<int32_t> targets) const;

 private:
  TokenSpan tokens_;
  int64_t block_size_;
};

struct SequentialOptions {
  // false: the last window may be shorter, so each of the n - 1 targets counts exactly once.
  // true: whole windows only, as the chapter's perplexity has it; floor((n-1)/T) of them.
  bool full_only = false;
};

// Non-overlapping windows in order: window i covers inputs iT .. iT+T-1. For the loss of a whole text.
class SequentialWindows {
 public:
  // Needs 2 tokens, or T + 1 with full_only.
  SequentialWindows(TokenSpan tokens, int64_t block_size, SequentialOptions options = {});

  int64_t count() const { return count_; }
  int64_t length(int64_t index) const;          // T, or less for the last one
  int64_t targets() const { return targets_; }  // over all windows
  // Both spans have length(index) elements.
  void window(int64_t index, std::span<int32_t> inputs, std::span<int32_t> targets) const;

 private:
  TokenSpan tokens_;
  int64_t block_size_;
  int64_t count_;
  int64_t targets_;
};

// Bytes that these tokens stand for: bits per byte = (sum of -ln p over targets) / (ln 2 * bytes_of(targets)).
// bytes_of_token[id] = bytes of one token. Throws on an id outside the table.
int64_t bytes_of(TokenSpan tokens, std::span<const int32_t> bytes_of_token);

}  // namespace bary
