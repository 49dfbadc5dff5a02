// SPDX-License-Identifier: Apache-2.0
// How well texts match their references, pair by pair in order. Characters are code points; bytes that are not UTF-8
// count as U+FFFD. Words are parted by white space (Python's str.split: Unicode's and U+001C-001F) and keep their
// punctuation. All throw on lists of unequal length and on empty ones.
//
// BLEU and chrF give the numbers of sacrebleu (Post 2018, "A call for clarity in reporting BLEU scores") with its
// defaults: BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp, chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no.
// Like its own, a perfect BLEU may come out a rounding above 100.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bary {

struct Share {
  int64_t right = 0, total = 0;
  double value() const { return total == 0 ? 1 : double(right) / double(total); }  // nothing to get wrong: 1
};

using Texts = std::span<const std::string>;

// Texts that equal their reference byte for byte, of all texts.
Share exact_match(Texts hypotheses, Texts references);

// right: places where both have the same character (word); total: the longer one's places, so what is missing and what
// is too much count alike. One insertion puts all that follows out of place: made for exercises whose texts line up
// by place (restoration: word for word; letters and digits: character for character).
Share character_accuracy(Texts hypotheses, Texts references);
Share word_accuracy(Texts hypotheses, Texts references);

constexpr int kBleuOrder = 4, kChrfOrder = 6;

// Papineni et al. 2002, over the whole corpus: n-gram counts and lengths are summed before anything is divided.
//   score = 100 brevity_penalty (p1 p2 p3 p4)^(1/4),  brevity_penalty = exp(1 - r/h) where h < r, else 1
//   pn = matched[n] / total[n]; the k-th order without a match gets 1 / (2^k total[n]); score 0 where no order has one
//   or an order has no n-gram at all (every hypothesis shorter than four tokens).
struct BleuScore {
  double score = 0;                                    // 0 to 100, as are the precisions
  std::array<double, kBleuOrder> precisions{};         // [n - 1]; all 0 where nothing matched
  std::array<int64_t, kBleuOrder> matched{}, total{};  // a hypothesis's n-gram matches at most as often as its
                                                       // reference has it
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0, reference_length = 0;  // tokens: h and r
};
BleuScore corpus_bleu(Texts hypotheses, Texts references);

// The tokens BLEU counts: mteval-v13a. Entities &quot; &amp; &lt; &gt; are read, ASCII punctuation stands alone, but
// "." and "," inside numbers, "-" except after a digit, and "'" stay where they are.
std::vector<std::string> tokens_13a(std::string_view line);

// Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation", beta = 2, white space left out.
//   P, R = mean over the orders 1..6 that both sides have of matched/hypothesis, matched/reference (summed over texts)
//   score = 100 (1 + 4) P R / (4 P + R)
struct ChrfScore {
  double score = 0;                  // 0 to 100
  double precision = 0, recall = 0;  // 0 to 1: P and R
  // n-grams [n - 1]. As in sacrebleu a hypothesis's count where its reference has any of that length, else not.
  std::array<int64_t, kChrfOrder> matched{}, hypothesis{}, reference{};
};
ChrfScore corpus_chrf(Texts hypotheses, Texts references);

struct TextScores {
  Share exact, characters, words;
  BleuScore bleu;
  ChrfScore chrf;
};
TextScores score_texts(Texts hypotheses, Texts references);  // all of the above

std::vector<std::string_view> split_words(std::string_view text);  // views into it

}  // namespace bary
