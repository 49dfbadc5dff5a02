// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/tokenizer.h"

#include <array>

#include "bary/base/clock.h"
#include "bary/base/error.h"
#include "bary/base/sha256.h"
#include "bary/bench/step.h"

namespace bary {

LearningTimes time_learning(std::string_view text, const BpeOptions& options, int64_t times) {
  LearningTimes out;
  const std::array<std::string_view, 1> documents = {text};
  for (int64_t i = 0; i < times; ++i) {
    Stopwatch watch;
    BpeTraining training = train_bpe(documents, options);
    out.seconds.push_back(watch.seconds());
    out.training = std::move(training);
  }
  return out;
}

CodingTimes time_encoding(const Tokenizer& tokenizer, std::string_view text, int64_t times) {
  CodingTimes out;
  const Tokenizer fresh(tokenizer.parts());
  for (int64_t i = 0; i < times; ++i) {
    Stopwatch watch;
    std::vector<int32_t> ids = fresh.encode(text, SpecialPolicy::as_text());
    out.seconds.push_back(watch.seconds());
    out.ids = std::move(ids);
  }
  return out;
}

std::vector<double> time_decoding(const Tokenizer& tokenizer, std::string_view text, int64_t times) {
  std::vector<double> seconds;
  const std::vector<int32_t> ids = tokenizer.encode(text, SpecialPolicy::as_text());
  for (int64_t i = 0; i < times; ++i) {
    Stopwatch watch;
    const std::string back = tokenizer.decode(ids);
    seconds.push_back(watch.seconds());
    BARY_CHECK(back == text,
               "bench tokenizer: {} ids of a text of {} bytes gave {} other bytes back; only a tokenizer that loses "
               "nothing is timed",
               ids.size(), text.size(), back.size());
  }
  return seconds;
}

double time_repeated(const Tokenizer& tokenizer, char character, int64_t count, int64_t times) {
  return median(time_encoding(tokenizer, std::string(static_cast<size_t>(count), character), times).seconds);
}

std::string ids_sha256(const std::vector<int32_t>& ids) {
  std::string bytes;
  bytes.reserve(4 * ids.size());
  for (const int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(static_cast<uint32_t>(id) >> shift & 255);
  return sha256_hex(bytes);
}

TokenizerFigures measure_tokenizer(std::string_view text, const BpeOptions& options, const Tokenizer* tokenizer,
                                   int64_t times) {
  BARY_CHECK(!text.empty(), "bench tokenizer: the text is empty; name one with at least a few thousand characters");
  BARY_CHECK(times >= 2, "bench tokenizer: {} codings do not make a first and a following one; ask for 2 or more",
             times);
  TokenizerFigures f;
  const LearningTimes learning = time_learning(text, options, times);
  const Tokenizer coder = tokenizer != nullptr ? *tokenizer : Tokenizer::bpe(learning.training, options);
  std::vector<double> cold, warm;
  for (int64_t i = 0; i < times; ++i) {
    const CodingTimes coding = time_encoding(coder, text, 2);
    cold.push_back(coding.seconds[0]), warm.push_back(coding.seconds[1]);
    f.ids = static_cast<int64_t>(coding.ids.size());
  }
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  f.bytes = static_cast<int64_t>(text.size());
  f.merges = static_cast<int64_t>(learning.training.steps.size());
  f.learn_seconds = median(learning.seconds);
  f.cold_mb_s = megabytes / median(cold);
  f.encode_mb_s = megabytes / median(warm);
  f.decode_mb_s = megabytes / median(time_decoding(coder, text, times));
  f.repeated_seconds = time_repeated(coder, 'a', f.kRepeated, times);
  f.repeated_ten_times_seconds = time_repeated(coder, 'a', 10 * f.kRepeated, times);
  return f;
}

}  // namespace bary
