// SPDX-License-Identifier: Apache-2.0
#include "bary/text/batch.h"

#include <algorithm>
#include <cmath>

#include "bary/base/error.h"

namespace bary {
namespace {

void check_block_size(int64_t block_size) {
  BARY_CHECK(block_size >= 1, "batch: block_size is {}, at least 1 is needed; choose a larger --block_size",
             block_size);
  BARY_CHECK(block_size < INT32_MAX, "batch: block_size is {}, at most {} is possible; choose a smaller --block_size",
             block_size, INT32_MAX - 1);
}

// Never written as n - T - 1 >= 0 on unsigned sizes, where a short text would wrap to a huge number of starts.
bool holds_a_window(int64_t tokens, int64_t block_size) { return tokens > block_size; }

void check_spans(std::span<int32_t> inputs, std::span<int32_t> targets, int64_t length) {
  BARY_CHECK(std::ssize(inputs) == length && std::ssize(targets) == length,
             "batch: the window has {} positions, but there is room for {} inputs and {} targets; make both {}", length,
             inputs.size(), targets.size(), length);
}

}  // namespace

int64_t count_to_learn_from(int64_t n, double val_fraction) {
  BARY_CHECK(val_fraction >= 0 && val_fraction < 1,
             "split: val_fraction is {}, it must be at least 0 and below 1; 0.1 holds out a tenth", val_fraction);
  // In whole billionths: in floating point (1 - 0.9) * 10 falls short of 1 and would lose a token.
  constexpr int64_t kBillion = 1'000'000'000;
  const int64_t keep = kBillion - std::llround(val_fraction * double(kBillion));
  return n / kBillion * keep + n % kBillion * keep / kBillion;
}

TokenSplit split_tokens(TokenSpan tokens, double val_fraction) {
  const int64_t n = tokens.size(), train = count_to_learn_from(n, val_fraction);
  return {tokens.slice(0, train), tokens.slice(train, n - train)};
}

void check_window_fits(const TokenSplit& split, int64_t block_size) {
  check_block_size(block_size);
  const int64_t train = split.train.size(), val = split.val.size(), all = train + val;
  const int64_t need = block_size + 1;
  BARY_CHECK(all > 0, "train: the text has 0 tokens, block_size {} needs at least {}; choose another text", block_size,
             need);
  BARY_CHECK(
      holds_a_window(all, block_size),
      "train: the text has {} tokens, block_size {} needs at least {}; choose a smaller --block_size or a longer "
      "text",
      all, block_size, need);
  BARY_CHECK(holds_a_window(train, block_size),
             "train: the part to learn from has {} of {} tokens, block_size {} needs at least {}; choose a smaller "
             "--block_size, a smaller --val_fraction or a longer text",
             train, all, block_size, need);
  BARY_CHECK(val == 0 || holds_a_window(val, block_size),
             "train: the validation part has {} of {} tokens, block_size {} needs at least {}; choose a smaller "
             "--block_size, a larger --val_fraction (0: no validation) or a longer text",
             val, all, block_size, need);
}

Windows::Windows(TokenSpan tokens, int64_t block_size, std::string_view what)
    : tokens_(tokens), block_size_(block_size) {
  check_block_size(block_size);
  BARY_CHECK(holds_a_window(tokens.size(), block_size),
             "batch: {} has {} tokens, block_size {} needs at least {}; choose a smaller --block_size or a longer text",
             what, tokens.size(), block_size, block_size + 1);
}

int64_t Windows::start_of(uint64_t seed, Purpose purpose, uint64_t step, uint64_t sequence) const {
  return static_cast<int64_t>(RandomStream(seed, purpose, step, sequence).below(static_cast<uint64_t>(starts())));
}

void Windows::window(uint64_t seed, Purpose purpose, uint64_t step, uint64_t sequence, std::span<int32_t> inputs,
                     std::span<int32_t> targets) const {
  window_at(start_of(seed, purpose, step, sequence), inputs, targets);
}

void Windows::window_at(int64_t start, std::span<int32_t> inputs, std::span<int32_t> targets) const {
  check_spans(inputs, targets, block_size_);
  BARY_CHECK(start >= 0 && start < starts(), "batch: window start {} is outside 0..{}; {} tokens hold no other", start,
             starts() - 1, tokens_.size());
  tokens_.copy(start, inputs);
  tokens_.copy(start + 1, targets);
}

SequentialWindows::SequentialWindows(TokenSpan tokens, int64_t block_size, SequentialOptions options)
    : tokens_(tokens), block_size_(block_size) {
  check_block_size(block_size);
  const int64_t need = options.full_only ? block_size : 1;
  BARY_CHECK(holds_a_window(tokens.size(), need),
             "eval: the text has {} tokens, block_size {} needs at least {}; choose a longer text", tokens.size(),
             block_size, need + 1);
  const int64_t pairs = tokens.size() - 1;
  const int64_t full = pairs / block_size;
  count_ = full + (!options.full_only && pairs % block_size != 0 ? 1 : 0);
  targets_ = options.full_only ? full * block_size : pairs;
}

int64_t SequentialWindows::length(int64_t index) const {
  BARY_CHECK(index >= 0 && index < count_, "eval: window {} is outside 0..{}; ask for a smaller one", index,
             count_ - 1);
  return std::min(block_size_, targets_ - index * block_size_);
}

void SequentialWindows::window(int64_t index, std::span<int32_t> inputs, std::span<int32_t> targets) const {
  check_spans(inputs, targets, length(index));
  tokens_.copy(index * block_size_, inputs);
  tokens_.copy(index * block_size_ + 1, targets);
}

int64_t bytes_of(TokenSpan tokens, std::span<const int32_t> bytes_of_token) {
  int64_t total = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    BARY_CHECK(id >= 0 && id < std::ssize(bytes_of_token),
               "tokens: id {} at position {} is not in the vocabulary of {}; use the tokenizer that made these tokens",
               id, i, bytes_of_token.size());
    total += bytes_of_token[static_cast<size_t>(id)];
  }
  return total;
}

}  // namespace bary
