// SPDX-License-Identifier: Apache-2.0
// Tokenizers under a clock, on one thread if the caller has set one: learning merges, text to ids and back, and the
// time that a long piece takes. A coder remembers pieces of the texts it has coded, so the first coding is slower than
// the following ones.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/tokenizer.h"

namespace bary {

struct LearningTimes {
  std::vector<double> seconds;  // of each training
  BpeTraining training;         // all give the same
};
// Throws what train_bpe throws.
LearningTimes time_learning(std::string_view text, const BpeOptions& options, int64_t times);

struct CodingTimes {
  std::vector<double> seconds;  // the first by a coder that has seen no text, the others by the same coder
  std::vector<int32_t> ids;
};
// Special tokens in the text are ordinary text. The new coder is made from the tokenizer's parts; that is not timed.
CodingTimes time_encoding(const Tokenizer& tokenizer, std::string_view text, int64_t times);

// Seconds of each decoding of the text's ids. Throws Error where they do not give the text back.
std::vector<double> time_decoding(const Tokenizer& tokenizer, std::string_view text, int64_t times);

// Median seconds of coding one character so many times: without a place to cut, most tokenizers' worst input.
double time_repeated(const Tokenizer& tokenizer, char character, int64_t count, int64_t times);

// Of the ids as 32-bit little-endian numbers: two coders with one hash gave the same ids.
std::string ids_sha256(const std::vector<int32_t>& ids);

struct TokenizerFigures {
  int64_t bytes = 0, ids = 0, merges = 0;
  double learn_seconds = 0;                                     // medians
  double cold_mb_s = 0, encode_mb_s = 0, decode_mb_s = 0;       // megabytes (1e6) of text a second
  double repeated_seconds = 0, repeated_ten_times_seconds = 0;  // kRepeated and 10 * kRepeated times one character
  static constexpr int64_t kRepeated = 100'000;
  double growth() const { return repeated_ten_times_seconds / repeated_seconds; }  // 10 where time is linear
};
// Learns by `options` and codes with `tokenizer`, or with what was learned where it is null. Refused: an empty text.
TokenizerFigures measure_tokenizer(std::string_view text, const BpeOptions& options, const Tokenizer* tokenizer,
                                   int64_t times);

}  // namespace bary
