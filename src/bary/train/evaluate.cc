// SPDX-License-Identifier: Apache-2.0
#include "bary/train/evaluate.h"

#include <numbers>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"

namespace bary {

double Evaluation::loss() const { return tokens ? loss_sum / static_cast<double>(tokens) : 0; }
double Evaluation::perplexity() const { return portable::exp(loss()); }
double Evaluation::bits_per_byte() const {
  return bytes ? loss_sum / std::numbers::ln2 / static_cast<double>(bytes) : 0;
}

double Evaluation::accuracy() const { return tokens ? static_cast<double>(right) / static_cast<double>(tokens) : 0; }
double Evaluation::exact_match() const {
  return sequences ? static_cast<double>(exact) / static_cast<double>(sequences) : 0;
}

nlohmann::json to_json(const Evaluation& e, const std::string& prefix) {
  auto counted = [](int64_t n, double value) { return n > 0 ? nlohmann::json(value) : nlohmann::json(); };
  return {{prefix + "_loss", counted(e.tokens, e.loss())},
          {prefix + "_perplexity", counted(e.tokens, e.perplexity())},
          {prefix + "_bits_per_byte", counted(e.bytes, e.bits_per_byte())},
          {prefix + "_accuracy", counted(e.sequences, e.accuracy())},
          {prefix + "_exact_match", counted(e.sequences, e.exact_match())}};
}

namespace {

// Window i has length(i) positions and is written by window(i, inputs, targets).
template <class Length, class Window>
Evaluation evaluate_windows(const LanguageModel& model, int64_t count, std::span<const int32_t> bytes_of_token,
                            Length length, Window window, const EvaluationProgress& progress) {
  struct Part {
    double loss = 0;
    int64_t tokens = 0, bytes = 0;
  };
  std::vector<Part> parts(static_cast<size_t>(count));
  const int64_t stride = progress ? std::max<int64_t>(threads() * 8, count / 50) : count;
  for (int64_t from = 0; from < count; from += stride) {
    const int64_t n = std::min(stride, count - from);
    parallel_tasks(n, [&](int64_t k, int) {
      const int64_t i = from + k;
      std::vector<int32_t> inputs(static_cast<size_t>(length(i))), targets(inputs.size());
      window(i, inputs, targets);
      LossSum l = model.loss(inputs, targets, 1);
      Part& p = parts[static_cast<size_t>(i)];
      p = {l.sum, l.count, bytes_of_token.empty() ? 0 : bytes_of(TokenSpan(targets), bytes_of_token)};
    });
    if (progress) progress(from + n, count);
  }
  Evaluation total;
  for (const Part& p : parts) total.loss_sum += p.loss, total.tokens += p.tokens, total.bytes += p.bytes;
  return total;
}

}  // namespace

Evaluation evaluate_all(const LanguageModel& model, TokenSpan tokens, std::span<const int32_t> bytes_of_token,
                        bool full_windows_only, const EvaluationProgress& progress) {
  SequentialWindows windows(tokens, model.config().block_size, {.full_only = full_windows_only});
  return evaluate_windows(
      model, windows.count(), bytes_of_token, [&](int64_t i) { return windows.length(i); },
      [&](int64_t i, std::span<int32_t> in, std::span<int32_t> out) { windows.window(i, in, out); }, progress);
}

Evaluation evaluate_some(const LanguageModel& model, TokenSpan tokens, std::span<const int32_t> bytes_of_token,
                         int64_t count, uint64_t seed) {
  Windows windows(tokens, model.config().block_size, "the text to evaluate");
  return evaluate_windows(
      model, count, bytes_of_token, [&](int64_t) { return windows.block_size(); },
      [&](int64_t i, std::span<int32_t> in, std::span<int32_t> out) {
        windows.window(seed, Purpose::eval_batch, 0, static_cast<uint64_t>(i), in, out);
      },
      {});
}

}  // namespace bary
