// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/fill.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bary/kernel/loss.h"

namespace bary {
namespace {

constexpr std::string_view kMask = kMaskToken;

// Special tokens have no bytes in the store of ordinary ones, and neither have ids without a token.
std::string_view ordinary(const Tokenizer& tokenizer, int32_t id) {
  const TokenStore& tokens = tokenizer.parts().tokens;
  return id < tokens.size() ? tokens[id] : std::string_view();
}

bool words_keep_their_space(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (ordinary(tokenizer, id).size() > 1 && ordinary(tokenizer, id)[0] == ' ') return true;
  return false;
}

// The text cut at its masks: one part more than there are gaps. Spaces that belong to a gap are taken off.
struct Cut {
  std::vector<std::string> parts;
  std::vector<bool> spaced;  // of each gap: a space was taken off before it
};

Cut cut_at_masks(const std::string& text, bool take_spaces) {
  Cut cut;
  size_t at = 0;
  for (size_t mask; (mask = text.find(kMask, at)) != std::string::npos; at = mask + kMask.size()) {
    const bool spaced = take_spaces && mask > at && text[mask - 1] == ' ';
    cut.parts.push_back(text.substr(at, mask - at - (spaced ? 1 : 0)));
    cut.spaced.push_back(spaced);
  }
  cut.parts.push_back(text.substr(at));
  return cut;
}

void check_can_fill(const LanguageModel& model, const Tokenizer& tokenizer, const std::string& text) {
  const ModelConfig& c = model.config();
  BARY_CHECK(c.arch == Arch::encoder,
             "fill: this model is arch={} and only an encoder learned to fill gaps; train one with `bary train --arch "
             "encoder`",
             arch_name(c));
  BARY_CHECK(tokenizer.special_id(kMask).has_value(),
             "fill: the tokenizer has no token {}, so it cannot say where a gap is; use the tokenizer the encoder was "
             "trained with",
             kMask);
  BARY_CHECK(tokenizer.vocab_size() <= c.vocab_size,
             "fill: the tokenizer has {} tokens, the model {}; do they belong together?", tokenizer.vocab_size(),
             c.vocab_size);
  BARY_CHECK(!text.empty(), "fill: the text is empty; write one with a gap, such as \"to be or {} to be\"", kMask);
  BARY_CHECK(text.find(kMask) != std::string::npos,
             "fill: the text has no gap; put {} where a token is missing, such as \"to be or {} to be\"", kMask, kMask);
}

std::vector<int32_t> encode_with_masks(const Tokenizer& tokenizer, const Cut& cut) {
  std::string text;
  for (size_t i = 0; i < cut.parts.size(); ++i) text.append(i ? kMask : "").append(cut.parts[i]);
  return tokenizer.encode(text, {false, {std::string(kMask)}, SpecialPolicy::Others::text});
}

std::vector<Proposal> proposals(const Tokenizer& tokenizer, const float* logits, bool spaced, int64_t top_k) {
  const int64_t V = tokenizer.vocab_size();
  std::vector<float> p(static_cast<size_t>(V));
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < V; ++id) {
    BARY_CHECK(std::isfinite(logits[id]), ErrorKind::numeric,
               "fill: the logit of token {} is not finite; the model's weights are damaged or its training diverged",
               id);
    const std::string_view bytes = ordinary(tokenizer, id);
    if (!bytes.empty() && (!spaced || bytes[0] == ' ')) ids.push_back(id);
  }
  kernel::softmax_rows(1, V, logits, V, p.data(), V);
  const auto k = std::min<int64_t>(top_k, std::ssize(ids));
  std::partial_sort(ids.begin(), ids.begin() + k, ids.end(),
                    [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  std::vector<Proposal> out;
  for (int64_t i = 0; i < k; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    out.push_back({id, std::string(ordinary(tokenizer, id)), p[static_cast<size_t>(id)]});
  }
  return out;
}

}  // namespace

Filled fill(LanguageModel& model, const Tokenizer& tokenizer, const std::string& text, const FillOptions& options) {
  BARY_CHECK(options.top_k >= 1, "fill: top_k is {}, expected 1 or more proposals", options.top_k);
  check_can_fill(model, tokenizer, text);
  const Cut cut = cut_at_masks(text, words_keep_their_space(tokenizer));
  Filled out;
  out.ids = encode_with_masks(tokenizer, cut);
  const ModelConfig& c = model.config();
  const int64_t n = std::ssize(out.ids);
  BARY_CHECK(c.pos != Position::learned || n <= c.positions(),
             "fill: the text has {} tokens and the model learned {} positions; shorten it, or train with a larger "
             "--context",
             n, c.positions());
  model.ensure_positions(n);
  for (int64_t t = 0; t < n; ++t)
    if (out.ids[static_cast<size_t>(t)] == *tokenizer.special_id(kMask)) out.gaps.push_back({t, {}});
  BARY_CHECK(out.gaps.size() == cut.spaced.size(),
             "fill: {} of the text's {} {} are part of other tokens of this tokenizer; remove what surrounds them",
             cut.spaced.size() - out.gaps.size(), cut.spaced.size(), kMask);
  const Tensor hidden = model.hidden(out.ids, 1);
  Tensor rows(Shape{1, std::ssize(out.gaps), hidden.channels()});
  for (size_t g = 0; g < out.gaps.size(); ++g)
    std::copy_n(hidden.row(out.gaps[g].position), hidden.channels(), rows.row(static_cast<int64_t>(g)));
  const Tensor logits = model.head(rows);
  out.text = cut.parts[0];
  for (size_t g = 0; g < out.gaps.size(); ++g) {
    Gap& gap = out.gaps[g];
    gap.proposals = proposals(tokenizer, logits.row(static_cast<int64_t>(g)), cut.spaced[g], options.top_k);
    out.text += gap.proposals[0].text + cut.parts[g + 1];
  }
  return out;
}

}  // namespace bary
