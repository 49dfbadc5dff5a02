// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/sentence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bary/nn/padded.h"

namespace bary {
namespace {

void check_model(const LanguageModel& model, const Tokenizer& tokenizer, const SentenceOptions& options) {
  const ModelConfig& c = model.config();
  BARY_CHECK(options.batch_tokens >= 1, "embed: batch_tokens is {}, expected 1 or more", options.batch_tokens);
  BARY_CHECK(options.pooling == Pooling::mean || !c.causal(),
             "embed: pooling=first, and the first token of this model (arch={}) has seen none of the others; choose "
             "mean, or train with --arch encoder",
             arch_name(c));
  BARY_CHECK(tokenizer.vocab_size() <= c.vocab_size,
             "embed: the tokenizer has {} tokens, the model {}; do they belong together?", tokenizer.vocab_size(),
             c.vocab_size);
}

std::vector<int32_t> encode_text(const ModelConfig& c, const Tokenizer& tokenizer, const std::string& text,
                                 size_t number) {
  BARY_CHECK(!text.empty(), "embed: text {} is empty; every text needs a character", number);
  std::vector<int32_t> ids = tokenizer.encode(text, SpecialPolicy::as_text());
  BARY_CHECK(c.recurrent() || c.pos != Position::learned || std::ssize(ids) <= c.positions(),
             "embed: text {} has {} tokens and the model learned {} positions; shorten it, or train with a larger "
             "--context",
             number, ids.size(), c.positions());
  return ids;
}

// Row by row in double: the order of the sum is the text's own.
std::vector<float> pooled(const Tensor& hidden, int64_t first_row, int64_t n, Pooling pooling) {
  if (pooling == Pooling::first) n = 1;
  std::vector<double> sum(static_cast<size_t>(hidden.channels()), 0.0);
  for (int64_t t = 0; t < n; ++t) {
    const float* h = hidden.row(first_row + t);
    for (size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(h[c]);
  }
  std::vector<float> mean(sum.size());
  for (size_t c = 0; c < sum.size(); ++c) mean[c] = static_cast<float>(sum[c] / static_cast<double>(n));
  return mean;
}

// Fills in the vectors of the sentences with these numbers, side by side.
void one_pass(const LanguageModel& model, std::span<const size_t> numbers, Pooling pooling,
              std::vector<Sentence>& sentences) {
  std::vector<std::vector<int32_t>> ids;
  for (size_t i : numbers) ids.push_back(sentences[i].ids);
  const Padded batch = pad(ids, 0);
  Pass pass;
  pass.lengths = batch.lengths;
  const Tensor hidden = model.hidden(batch.ids, batch.B(), pass);
  for (size_t b = 0; b < numbers.size(); ++b)
    sentences[numbers[b]].vector = pooled(hidden, static_cast<int64_t>(b) * batch.T(), batch.lengths[b], pooling);
}

}  // namespace

std::vector<Sentence> sentence_vectors(LanguageModel& model, const Tokenizer& tokenizer,
                                       const std::vector<std::string>& texts, const SentenceOptions& options) {
  check_model(model, tokenizer, options);
  std::vector<Sentence> out(texts.size());
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    out[i].ids = encode_text(model.config(), tokenizer, texts[i], i + 1);
    longest = std::max<int64_t>(longest, std::ssize(out[i].ids));
  }
  model.ensure_positions(longest);
  // Longest first: texts of about one length share a pass, and little of it is padding.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return out[a].ids.size() > out[b].ids.size(); });
  for (size_t at = 0; at < order.size();) {
    const int64_t room = std::max<int64_t>(1, options.batch_tokens / std::ssize(out[order[at]].ids));
    const size_t n = std::min(static_cast<size_t>(room), order.size() - at);
    one_pass(model, std::span(order).subspan(at, n), options.pooling, out);
    at += n;
  }
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  BARY_CHECK(a.size() == b.size(), "cosine: the vectors have {} and {} numbers; compare vectors of one model", a.size(),
             b.size());
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ab += x * y, aa += x * x, bb += y * y;
  }
  BARY_CHECK(
      std::isfinite(aa) && std::isfinite(bb), ErrorKind::numeric,
      "cosine: a number of the {} vector is not finite; the model's weights are damaged or its training diverged",
      std::isfinite(aa) ? "second" : "first");
  BARY_CHECK(aa > 0 && bb > 0, "cosine: the {} vector is all zeros and has no direction; compare other vectors",
             aa > 0 ? "second" : "first");
  return std::clamp(ab / std::sqrt(aa * bb), -1.0, 1.0);
}

}  // namespace bary
