// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/translate_text.h"

#include <fmt/format.h>

namespace bary {

namespace {

void check_not_empty(const std::vector<std::string>& sources) {
  for (size_t i = 0; i < sources.size(); ++i)
    BARY_CHECK(!sources[i].empty(), "translate: source {} is empty; every source needs a character", i + 1);
}

std::vector<int32_t> never_written(const Tokenizer& t, int32_t eos) {
  std::vector<int32_t> ids = t.gaps();
  for (const SpecialToken& special : t.specials())
    if (special.id != eos) ids.push_back(special.id);
  return ids;
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const Sides& sides, const std::vector<std::string>& sources,
                                               BeamOptions options) {
  check_not_empty(sources);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& s : sources) ids.push_back(source_tokens(sides.source, s));
  options.tokens = pair_tokens(sides.target);
  options.never = never_written(sides.target, options.tokens.eos);
  return beam_search(sides.model, ids, options);
}

std::vector<std::vector<Hypothesis>> translate(const OneStack& stack, const std::vector<std::string>& sources,
                                               LineOptions options) {
  check_not_empty(sources);
  options.prefix = stack.prefix;
  options.tokens = pair_tokens(stack.tokenizer);
  options.never = never_written(stack.tokenizer, options.tokens.eos);
  std::vector<std::vector<Hypothesis>> all;
  for (const std::string& s : sources)
    all.push_back({answer_line(stack.model, source_tokens(stack.tokenizer, s), options)});
  return all;
}

bool reads_prefix(const LoadedModel& m) { return m.state.contains("prefix") && m.state["prefix"] == true; }

std::vector<std::string> sample_pairs(const PairData& data, uint64_t seed, int64_t count, const Answer& answer) {
  if (data.task().facts().held_out <= 0) return {};
  const std::vector<TextPair> pairs = drawn_pairs(data.task(), seed, PairSplit::held_out, count);
  std::vector<std::string> sources, lines;
  for (const TextPair& p : pairs) sources.push_back(p.source);
  const auto found = answer(sources);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string text = data.target().decode(found[i][0].ids);
    const bool right = text == pairs[i].target;
    lines.push_back(fmt::format("{} -> {}{}", pairs[i].source, text,
                                right ? "" : fmt::format("   (should be {})", pairs[i].target)));
  }
  return lines;
}

}  // namespace bary
