// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "bary/lab/two_nouns.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

constexpr const char* kModels[] = {"average", "one block", "two blocks"};
constexpr int64_t kKinds[] = {8, 10, 12, 14, 16};
constexpr int64_t kHeads = 4;
constexpr const char* kTwo = "two blocks/1";

Sample percent(Sample s) {
  for (double& v : s.values) v *= 100;
  return s;
}
Sample right(const Rows& rows, const std::string& row) { return percent(rows.sample(row, "right")); }

std::string each_seed(const Sample& s) {
  std::string out;
  for (double v : s.values) out += (out.empty() ? "" : ", ") + number_text(v, 4);
  return out;
}

void tell_accuracy(const Rows& rows, Findings& f) {
  Table t({{"language", Align::left},
           {"model", Align::left},
           {"parameters", Align::right},
           {"held-out sentences", Align::right},
           {"right %", Align::right},
           {"published", Align::right},
           {"wrong noun %", Align::right},
           {"by seed", Align::right}});
  auto add = [&](const char* language, const std::string& model, const std::string& row, const char* published) {
    const Sample s = right(rows, row);
    if (s.n() == 0) return;
    auto count = [&](const char* field) { return rows.count(row + "/1", field); };
    t.row({language, model, count("parameters"), count("sentences"), s.text(), published,
           percent(rows.sample(row, "wrong noun")).text(), each_seed(s)});
  };
  add("closed", "average added", "average", "27.9");
  add("closed", "one block", "one block", "92.7");
  add("closed", "two blocks", "two blocks", "100");
  for (int64_t kinds : kKinds)
    add("leaky", fmt::format("average added, {0} x {0} pairs", kinds), leaky_row(kinds), kinds == 16 ? "100.0" : "");
  add("leaky", "one block, 16 x 16 pairs", "leaky one block", "91.7");
  f.tables.emplace_back("the word after \"so the\" in sentences that were not in training", t);
}

void draw_training(const Rows& rows, Findings& f) {
  Figure answers{"closed language: the right noun and the wrong one of the pair", "updates", "share of sentences", {}};
  for (const char* m : kModels) {
    for (const std::string& key : rows.keys(m)) {
      if (rows.stopped(key)) continue;
      answers.series.push_back({key + ", right", rows.numbers(key, "steps"), rows.numbers(key, "rights")});
      if (m == kModels[0])
        answers.series.push_back({key + ", wrong noun", rows.numbers(key, "steps"), rows.numbers(key, "wrongs")});
    }
  }
  Figure pairs{
      "leaky language: the average against the number of pairs, mean over seeds", "pairs of nouns", "share right", {}};
  for (double share : {0.375, 0.625, 1.0}) {  // of the training: the curves hold about 40 points
    Series s;
    for (int64_t kinds : kKinds) {
      Sample moment;
      for (const std::string& key : rows.keys(leaky_row(kinds))) {
        const auto steps = rows.numbers(key, "steps"), rights = rows.numbers(key, "rights");
        if (steps.empty() || rights.size() != steps.size()) continue;
        const double until = share * steps.back();
        const auto at = std::upper_bound(steps.begin(), steps.end(), until + 0.5) - steps.begin() - 1;
        s.name = fmt::format("after {} updates", number_text(until, 5));
        moment.values.push_back(rights[static_cast<size_t>(std::max<std::ptrdiff_t>(at, 0))]);
      }
      if (moment.n() == 0) continue;
      s.x.push_back(static_cast<double>(kinds * kinds)), s.y.push_back(moment.mean());
    }
    if (!s.x.empty()) pairs.series.push_back(s);
  }
  f.figures = {answers, pairs};
}

void draw_maps(const Rows& rows, Findings& f) {
  const auto& row = rows.at(kTwo);
  if (!row.is_object() || !row.contains("words")) return;
  const auto words = row["words"].get<std::vector<std::string>>();
  std::vector<std::string> adjectives(std::begin(kAdjectives), std::end(kAdjectives));
  HeatMap both{
      "where the blocks look from the last word, mean over heads, seed 1", "block, adjective", "word", {}, words, {}};
  Table t({{"block", Align::right}, {"adjective", Align::left}, {"looks at", Align::left}, {"published", Align::left}});
  for (int block : {1, 2}) {
    const auto map = rows.numbers(kTwo, fmt::format("map {}", block));
    if (map.size() != words.size() * adjectives.size()) return;
    f.maps.push_back(
        {fmt::format("block {}, all eight adjectives, seed 1", block), "adjective", "word", adjectives, words, map});
    for (int64_t a : {kTired, kWet}) {
      const auto begin = map.begin() + a * std::ssize(words);
      const std::vector<double> weights(begin, begin + std::ssize(words));
      const std::string& adjective = adjectives[static_cast<size_t>(a)];
      both.row_labels.push_back(fmt::format("{} {}", block, adjective));
      both.values.insert(both.values.end(), weights.begin(), weights.end());
      std::vector<size_t> order(words.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return weights[i] > weights[j]; });
      std::string most;
      for (size_t i = 0; i < 4; ++i)
        most += fmt::format("{}{} ({}) {:.2f}", i ? ", " : "", order[i] == kAdjectiveAt ? adjective : words[order[i]],
                            order[i] + 1, weights[order[i]]);
      t.row({std::to_string(block), adjective, most,
             block == 1    ? "0.70 on the first noun"
             : a == kTired ? "1.00 on tired"
                           : "0.49 on street, 0.25 on the last the, 0.20 on too"});
    }
  }
  f.maps.insert(f.maps.begin(), both);
  f.tables.emplace_back(
      "the four largest weights at the answering position (word, its place in the sentence), uniform would be 0.067",
      t);
}

void tell_heads(const Rows& rows, Findings& f) {
  Table t({{"model", Align::left},
           {"block", Align::right},
           {"none off", Align::right},
           {"head 1", Align::right},
           {"head 2", Align::right},
           {"head 3", Align::right},
           {"head 4", Align::right},
           {"all off", Align::right}});
  for (const char* model : {"two blocks", "one block"}) {
    for (const std::string& key : rows.keys(model)) {
      const auto off = rows.numbers(key, "off");
      for (size_t block = 0; (block + 1) * (kHeads + 1) <= off.size(); ++block) {
        std::vector<std::string> cells{key, std::to_string(block + 1), number_text(100 * rows.number(key, "right"), 4)};
        for (size_t h = 0; h <= kHeads; ++h) cells.push_back(number_text(100 * off[block * (kHeads + 1) + h], 4));
        t.row(cells);
      }
    }
  }
  if (t.rows() > 0) f.tables.emplace_back("held-out accuracy in % with heads of a block switched off, model/seed", t);
}

// Seed by seed: the head of block 1 that can't be spared, and where both blocks look from the answering position
void tell_circuit(const Rows& rows, Findings& f) {
  Table t({{"model/seed", Align::left},
           {"most needed head of block 1", Align::right},
           {"right % without it", Align::right},
           {"block 1 on tired", Align::right},
           {"on wet", Align::right},
           {"block 2 for tired: first noun", Align::right},
           {"second", Align::right},
           {"for wet: first noun", Align::right},
           {"second", Align::right}});
  for (const std::string& key : rows.keys("two blocks")) {
    const auto first = rows.numbers(key, "map 1"), second = rows.numbers(key, "map 2"), off = rows.numbers(key, "off");
    if (first.empty() || second.size() != first.size() || off.size() != 2 * (kHeads + 1)) continue;
    const auto head = std::min_element(off.begin(), off.begin() + kHeads) - off.begin();
    const size_t T = first.size() / std::size(kAdjectives);
    auto weight = [&](const std::vector<double>& map, int64_t adjective, int64_t at) {
      return fmt::format("{:.2f}", map[static_cast<size_t>(adjective) * T + static_cast<size_t>(at)]);
    };
    t.row({key, std::to_string(head + 1), number_text(100 * off[static_cast<size_t>(head)], 4),
           weight(first, kTired, kAdjectiveAt), weight(first, kWet, kAdjectiveAt), weight(second, kTired, kFirstNounAt),
           weight(second, kTired, kSecondNounAt), weight(second, kWet, kFirstNounAt),
           weight(second, kWet, kSecondNounAt)});
  }
  if (t.rows() > 0) f.tables.emplace_back("the circuit of two blocks (weights are means over four heads)", t);
}

// Does block 1, mean over four heads, put a quarter on wet and next to nothing on tired in every seed?
bool adjective_in_block_1(const Rows& rows) {
  bool every = rows.has(kTwo);
  for (const std::string& key : rows.keys("two blocks")) {
    const auto first = rows.numbers(key, "map 1");
    const size_t T = first.size() / std::size(kAdjectives);
    if (T <= static_cast<size_t>(kAdjectiveAt)) return false;
    every = every && first[kWet * T + kAdjectiveAt] > 0.2 && first[kTired * T + kAdjectiveAt] < 0.05;
  }
  return every;
}

double total_variation(const std::vector<double>& map, size_t a, size_t b) {
  const size_t T = map.size() / std::size(kAdjectives);
  double sum = 0;
  for (size_t t = 0; t < T; ++t) sum += std::fabs(map[a * T + t] - map[b * T + t]);
  return sum / 2;
}

// Mean distance of rows of different kinds of adjectives over that of rows of one kind
double kinds_apart(const std::vector<double>& map) {
  double sum[2] = {0, 0}, pairs[2] = {0, 0};
  for (size_t a = 0; a < std::size(kAdjectives); ++a) {
    for (size_t b = a + 1; b < std::size(kAdjectives); ++b) {
      const size_t differ = (a < std::size(kAdjectives) / 2) != (b < std::size(kAdjectives) / 2);
      sum[differ] += total_variation(map, a, b), pairs[differ] += 1;
    }
  }
  return (sum[1] / pairs[1]) / (sum[0] / pairs[0]);
}

void judge_looking(const Rows& rows, const Plan& plan, Findings& f) {
  double scores = 0, weights = 0;
  Sample ratio, without_1, without_2;
  for (const std::string& key : rows.keys("two blocks")) {
    if (rows.stopped(key)) {
      scores = weights = std::nan("");
      for (Sample* s : {&ratio, &without_1, &without_2}) s->values.push_back(std::nan(""));
      continue;
    }
    const auto first = rows.numbers(key, "map 1"), second = rows.numbers(key, "map 2"), off = rows.numbers(key, "off");
    if (first.empty() || second.empty() || off.size() != 2 * (kHeads + 1)) return;
    scores = greater_of(scores, rows.number(key, "scores apart"));
    const size_t T = first.size() / std::size(kAdjectives);
    for (size_t t = 0; t < T; ++t)
      weights = greater_of(weights, std::fabs(first[kTired * T + t] - first[kWet * T + t]));
    ratio.values.push_back(kinds_apart(second));
    without_1.values.push_back(100 * off[kHeads]), without_2.values.push_back(100 * off[2 * kHeads + 1]);
  }
  if (ratio.n() == 0) return;
  f.say("W4 scores", "largest difference " + number_text(scores, 3), verdict_of(scores == 0));
  f.say("W4 map", "largest difference " + number_text(weights, 3), plan.unless_smoke(verdict_of(weights < 0.005)));
  const bool every = std::all_of(ratio.values.begin(), ratio.values.end(), [](double v) { return v >= 2; });
  f.say("W5 rule", each_seed(ratio) + " times as far apart", plan.unless_smoke(verdict_of(every)));
  f.say("W5 hops",
        fmt::format("without block 1's heads {} %, without block 2's {} %", without_1.text(), without_2.text()),
        plan.unless_smoke(both(at_most(without_1, 60), at_most(without_2, 60))));
}

}  // namespace

std::vector<Claim> two_nouns_claims() {
  return {
      {"W2 average", "Leaky language: a bag of words is enough, so the sentence proves nothing.", "100.0 %",
       "the average added to the token is right in at least 99 % of held-out sentences of 16 x 16 pairs (mean over "
       "seeds)"},
      {"W2 one block", "Leaky language: one block does worse than the bag of words.", "91.7 %",
       "at 16 x 16 pairs one block is at least one point below the average (mean over seeds)"},
      {"W3 average", "Closed language: the average cannot know which noun is meant.",
       "27.9 %, the wrong noun half the time",
       "right in at most 50 % of held-out sentences (mean over seeds) plus two standard errors of that many coin "
       "tosses"},
      {"W3 one block", "Closed language: one block lies in between.", "92.7 %",
       "the mean over seeds is at least half a point above the average's and below the two blocks'"},
      {"W3 two blocks", "Closed language: two blocks solve it.", "100 %", "right in at least 99.5 % (mean over seeds)"},
      {"W4 scores", "What block 1 asks at the answering position cannot depend on the adjective.", "identical",
       "its scores of the other fourteen words are the same bits for tired and wet, in every head and seed"},
      {"W4 map", "Block 1's map is the same in both sentences.", "identical, printed with two decimals",
       "no weight of its mean over heads at the answering position differs by 0.005"},
      {"W5 rule", "Block 2's row over the eight adjectives shows the rule.", "",
       "rows of adjectives of different kinds are at least twice as far apart (total variation) as rows of one kind, "
       "in every seed"},
      {"W5 hops", "It is a circuit of two hops: neither block's attention can be spared.", "",
       "with all heads of block 1 off, and with all of block 2 off, at most 60 % are right (mean over seeds)"},
  };
}

Findings judge_two_nouns(const Rows& rows, const Plan& plan) {
  Findings f;
  tell_accuracy(rows, f);
  draw_training(rows, f);
  draw_maps(rows, f);
  tell_heads(rows, f);
  tell_circuit(rows, f);
  const Sample average = right(rows, "average"), one = right(rows, "one block"), two = right(rows, "two blocks");
  const Sample leaky = right(rows, leaky_row(16)), leaky_one = right(rows, "leaky one block");
  auto say = [&](const char* id, const std::string& measured, Verdict v) { f.say(id, measured, plan.unless_smoke(v)); };
  say("W2 average", leaky.text(), at_least(leaky, 99));
  // The average is right in at most 100 %: beside a block that is always right, no spread can make it better.
  const bool out_of_reach = leaky_one.n() > 0 && least(leaky_one.values) > 99;
  say("W2 one block", leaky_one.text(), out_of_reach ? Verdict::fails : at_least(leaky - leaky_one, 1));
  const double tosses = static_cast<double>(average.n()) * rows.number("average/1", "sentences");
  say("W3 average",
      average.n()
          ? fmt::format("{}; wrong noun {}", average.text(), percent(rows.sample("average", "wrong noun")).text())
          : "",
      at_most(average, 50 + 2 * 50 / std::sqrt(tosses)));
  Sample above = one, below = one;
  for (double& v : above.values) v -= average.mean();
  for (double& v : below.values) v = two.mean() - v;
  say("W3 one block", one.n() > 1 ? fmt::format("{} (by seed {})", one.text(), each_seed(one)) : one.text(),
      average.n() && two.n() ? both(at_least(above, 0.5), at_least(below, 0.5)) : Verdict::undecided);
  say("W3 two blocks", two.text(), at_least(two, 99.5));
  judge_looking(rows, plan, f);
  f.notes = {
      "The text gives sixteen nouns for the closed language and no sizes for the leaky one, nor width, steps or "
      "learning rate: here width 128, batch 64, learning rate 1e-3, next-token loss on all 17 positions, a quarter "
      "of the pairs held out. Averages train 4,000 updates at every budget, blocks 1,000 at the quick and 4,000 at "
      "the chapter's; a seed also draws which pairs are held out.",
      "The average's share of right answers passes the published 27.9 % on its way to one half, where the other half "
      "is the wrong noun of the pair; how far it has come is mostly a matter of updates. But at that moment it gives "
      "the wrong noun about as often as the right one, not half the time as published: that pair of figures was not "
      "found.",
      "Leaky language: what separates the sizes is mostly the number of updates; the figure shows the same "
      "trainings at three moments.",
      "Block 1: query and keys of the first block know only their own word and place, so all scores but the "
      "adjective's own are equal to the bit. The weights are not: the adjective stands before the answering "
      "position, its own score differs, and the softmax divides by the sum of all. They agree as far as the "
      "adjective gets little weight.",
      "A single block can solve the closed language (some seeds do): its heads can bring the nouns and the "
      "adjective to the answering position at once for its MLP to decide. So two hops are what two blocks find, not "
      "what the task demands, and what is left without block 1 may lie above chance.",
      "W0, the map of a model of the text as it is, stands under induction, which trains one."};
  if (f.verdict("W4 map") == Verdict::fails && adjective_in_block_1(rows))
    f.notes.push_back(
        "Why W4 map does not hold: the two hops come in the other order than published. For the adjectives of one "
        "kind, wet among them, one head of block 1 looks at the adjective and at little else (a quarter of the mean "
        "over "
        "heads), and block 2 fetches the noun. The published maps, where block 1 brings the first noun and block 2 "
        "reads "
        "tired, are another solution of the same task.");
  if (f.verdict("W2 one block") == Verdict::fails)
    f.notes.push_back(
        "Why W2 one block does not hold: with the sizes and updates chosen here one block is right in every held-out "
        "sentence of the leaky language, or nearly; the published 91.7 % was not found. Where every seed of it is "
        "right "
        "in more than 99 % the average cannot lie a point above, whatever its spread: that was said undecided at "
        "first.");
  return f;
}

}  // namespace bary::lab
