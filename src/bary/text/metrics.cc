// SPDX-License-Identifier: Apache-2.0
#include "bary/text/metrics.h"

#include <algorithm>
#include <numeric>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"
#include "bary/text/ngram_matches.h"
#include "bary/text/unicode.h"
#include "bary/text/utf8.h"

namespace bary {
namespace {

void check_lists(const char* what, Texts hypotheses, Texts references) {
  BARY_CHECK(hypotheses.size() == references.size(),
             "{}: there are {} texts but {} references; give each text its reference", what, hypotheses.size(),
             references.size());
  BARY_CHECK(!hypotheses.empty(), "{}: there are no texts to score; give one at least", what);
}

bool is_space(uint32_t code) { return unicode_table()[code] == CharClass::space || (code >= 0x1C && code <= 0x1F); }

std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> codes;
  const std::string whole = replace_invalid_utf8(text);
  const char* const end = whole.data() + whole.size();
  for (const char* p = whole.data(); p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    codes.push_back(c.code);
    p += c.size;
  }
  return codes;
}

template <class Items>
void count_places(Share& share, const Items& hypothesis, const Items& reference) {
  const size_t both = std::min(hypothesis.size(), reference.size());
  for (size_t i = 0; i < both; ++i) share.right += hypothesis[i] == reference[i];
  share.total += static_cast<int64_t>(std::max(hypothesis.size(), reference.size()));
}

BleuScore bleu_of_counts(BleuScore bleu) {
  const double h = double(bleu.hypothesis_length), r = double(bleu.reference_length);
  if (h < r) bleu.brevity_penalty = h > 0 ? portable::exp(1 - r / h) : 0;
  if (std::all_of(bleu.matched.begin(), bleu.matched.end(), [](int64_t n) { return n == 0; })) return bleu;
  double smoothed = 1, sum_of_logs = 0;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    // The geometric mean with a precision of 0: this order and the higher ones have no n-grams.
    if (bleu.total[n] == 0) return bleu;
    if (bleu.matched[n] == 0) smoothed *= 2;
    const double numerator = bleu.matched[n] == 0 ? 100 / smoothed : 100 * double(bleu.matched[n]);
    bleu.precisions[n] = numerator / double(bleu.total[n]);
    sum_of_logs += portable::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * portable::exp(sum_of_logs / kBleuOrder);
  return bleu;
}

ChrfScore chrf_of_counts(ChrfScore chrf) {
  int orders = 0;
  for (size_t n = 0; n < kChrfOrder; ++n) {
    if (chrf.hypothesis[n] == 0 || chrf.reference[n] == 0) continue;
    chrf.precision += double(chrf.matched[n]) / double(chrf.hypothesis[n]);
    chrf.recall += double(chrf.matched[n]) / double(chrf.reference[n]);
    ++orders;
  }
  if (orders == 0) return chrf;
  chrf.precision /= orders;
  chrf.recall /= orders;
  constexpr double kBetaSquared = 4;
  const double p = chrf.precision, r = chrf.recall;
  if (p + r > 0) chrf.score = 100 * ((1 + kBetaSquared) * p * r / (kBetaSquared * p + r));
  return chrf;
}

std::vector<uint32_t> without_space(std::vector<uint32_t> codes) {
  std::erase_if(codes, is_space);
  return codes;
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  const char* const end = text.data() + text.size();
  const char* begin = text.data();
  for (const char* p = begin; p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    if (is_space(c.code)) {
      if (begin < p) words.emplace_back(begin, static_cast<size_t>(p - begin));
      begin = p + c.size;
    }
    p += c.size;
  }
  if (begin < end) words.emplace_back(begin, static_cast<size_t>(end - begin));
  return words;
}

Share exact_match(Texts hypotheses, Texts references) {
  check_lists("exact match", hypotheses, references);
  Share share;
  for (size_t i = 0; i < hypotheses.size(); ++i) share.right += hypotheses[i] == references[i];
  share.total = std::ssize(hypotheses);
  return share;
}

Share character_accuracy(Texts hypotheses, Texts references) {
  check_lists("character accuracy", hypotheses, references);
  Share share;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    count_places(share, code_points(hypotheses[i]), code_points(references[i]));
  }
  return share;
}

Share word_accuracy(Texts hypotheses, Texts references) {
  check_lists("word accuracy", hypotheses, references);
  Share share;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    count_places(share, split_words(hypotheses[i]), split_words(references[i]));
  }
  return share;
}

BleuScore corpus_bleu(Texts hypotheses, Texts references) {
  check_lists("BLEU", hypotheses, references);
  BleuScore sums;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const NumberedTokens pair = number_tokens(tokens_13a(hypotheses[i]), tokens_13a(references[i]));
    sums.hypothesis_length += std::ssize(pair.left);
    sums.reference_length += std::ssize(pair.right);
    for (size_t n = 0; n < kBleuOrder; ++n) {
      const NgramCounts counts = ngram_matches(pair.left, pair.right, n + 1);
      sums.matched[n] += counts.matched;
      sums.total[n] += counts.left;
    }
  }
  return bleu_of_counts(sums);
}

ChrfScore corpus_chrf(Texts hypotheses, Texts references) {
  check_lists("chrF", hypotheses, references);
  ChrfScore sums;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const auto hypothesis = without_space(code_points(hypotheses[i]));
    const auto reference = without_space(code_points(references[i]));
    for (size_t n = 0; n < kChrfOrder; ++n) {
      const NgramCounts counts = ngram_matches(hypothesis, reference, n + 1);
      sums.matched[n] += counts.matched;
      sums.hypothesis[n] += counts.right > 0 ? counts.left : 0;
      sums.reference[n] += counts.right;
    }
  }
  return chrf_of_counts(sums);
}

TextScores score_texts(Texts hypotheses, Texts references) {
  return {exact_match(hypotheses, references), character_accuracy(hypotheses, references),
          word_accuracy(hypotheses, references), corpus_bleu(hypotheses, references),
          corpus_chrf(hypotheses, references)};
}

}  // namespace bary
