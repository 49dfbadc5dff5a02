// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/translate_text.h"

#include <fmt/format.h>

namespace bary {

std::vector<std::vector<Hypothesis>> translate(const Sides& sides, const std::vector<std::string>& sources,
                                               BeamOptions options) {
  std::vector<std::vector<int32_t>> ids;
  for (size_t i = 0; i < sources.size(); ++i) {
    BARY_CHECK(!sources[i].empty(), "translate: source {} is empty; every source needs a character", i + 1);
    ids.push_back(source_tokens(sides.source, sources[i]));
  }
  options.tokens = pair_tokens(sides.target);
  for (const SpecialToken& special : sides.target.specials())
    if (special.id != options.tokens.eos) options.never.push_back(special.id);
  return beam_search(sides.model, ids, options);
}

std::vector<std::string> sample_pairs(Seq2Seq& model, const PairData& data, uint64_t seed, int64_t count) {
  if (data.task().facts().held_out <= 0) return {};
  const std::vector<TextPair> pairs = drawn_pairs(data.task(), seed, PairSplit::held_out, count);
  std::vector<std::string> sources, lines;
  for (const TextPair& p : pairs) sources.push_back(p.source);
  const auto found = translate({model, data.source(), data.target()}, sources, {});
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string answer = data.target().decode(found[i][0].ids);
    const bool right = answer == pairs[i].target;
    lines.push_back(fmt::format("{} -> {}{}", pairs[i].source, answer,
                                right ? "" : fmt::format("   (should be {})", pairs[i].target)));
  }
  return lines;
}

}  // namespace bary
