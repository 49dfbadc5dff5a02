// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/line.h"

#include <algorithm>
#include <limits>

#include "bary/base/error.h"
#include "bary/generate/generate.h"

namespace bary {
namespace {

void check_is_of_lines(const ModelConfig& c) {
  BARY_CHECK(c.arch == Arch::decoder && c.causal(),
             "a line is gone on with by a causal decoder, and this model is arch={}", arch_name(c));
}

}  // namespace

Hypothesis answer_line(LanguageModel& model, std::span<const int32_t> source, const LineOptions& o) {
  const ModelConfig& c = model.config();
  check_is_of_lines(c);
  BARY_CHECK(source.size() > 1, "the source is empty; every source needs a token");
  BARY_CHECK(o.max_tokens >= 0 && o.max_tokens <= 1 << 24, "max_tokens is {}; it must be 0 to 2^24", o.max_tokens);
  for (int32_t token : o.never)
    BARY_CHECK(token >= 0 && token < c.vocab_size, "never: token {} of {}", token, c.vocab_size);
  std::vector<int32_t> next(source.begin(), source.end() - 1);
  next.push_back(o.tokens.bos);
  const auto shown = static_cast<int64_t>(next.size());
  int64_t most = longest_answer(c, o.max_tokens, shown);
  if (c.learned_positions()) most = std::min(most, c.positions() - shown);
  model.ensure_positions(shown + std::max<int64_t>(most, 0));
  check_cache_memory(c, 1, shown + most);
  KvCache cache = model.make_cache(1, shown + most);
  const std::vector<int64_t> prefix{shown};
  Pass pass;
  pass.cache = &cache;
  if (o.prefix) pass.prefix = prefix;
  Hypothesis h;
  for (;;) {
    std::vector<double> log_p = log_softmax(last_logits(model, model.hidden(next, 1, pass)), 0);
    pass.prefix = {};  // what comes now sees all of the source anyway
    for (int32_t id : o.never) log_p[static_cast<size_t>(id)] = -std::numeric_limits<double>::infinity();
    const auto length = static_cast<int64_t>(h.ids.size());
    const auto best = static_cast<int32_t>(std::max_element(log_p.begin(), log_p.end()) - log_p.begin());
    if (best != o.tokens.eos && length == most) return h;
    h.log_probability += log_p[static_cast<size_t>(best)];
    h.score = h.log_probability;
    if (best == o.tokens.eos) {
      h.ended = true;
      return h;
    }
    h.ids.push_back(best);
    if (o.on_token) o.on_token(best);
    if (o.cancelled && o.cancelled()) return h;
    next = {best};
  }
}

double log_probability(LanguageModel& model, const CodedPair& pair, const LineOptions& o) {
  check_is_of_lines(model.config());
  const LineBatch batch = lines_of(std::span(&pair, 1), o.tokens);
  model.ensure_positions(batch.inputs.T());
  Pass pass;
  if (o.prefix) pass.prefix = batch.sources;
  return -model.loss(batch.inputs.ids, batch.targets, 1, pass).sequences[0];
}

}  // namespace bary
