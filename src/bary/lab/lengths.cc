// SPDX-License-Identifier: Apache-2.0
// What the length of the text decides: no weight, the number of passes of generation, and the cost of each part.
#include "bary/lab/lengths.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bary/base/random.h"
#include "bary/generate/generate.h"
#include "bary/lab/list.h"
#include "bary/model/count.h"
#include "bary/report/format.h"
#include "bary/tensor/tap.h"

namespace bary::lab {
namespace {

constexpr int64_t kWidth = 64, kPrompt = 12;
constexpr int64_t kLengths[] = {16, 32, 64, 128, 256};
struct Kind {
  Position pos;
  const char* name;
};
constexpr Kind kKinds[] = {{Position::none, "none"},
                           {Position::learned, "learned"},
                           {Position::sinusoidal, "sinusoidal"},
                           {Position::rotary, "rotary"},
                           {Position::alibi, "alibi"}};

ModelConfig small(Position pos, int64_t T) {
  ModelConfig c = preset("two-blocks");
  c.vocab_size = 256, c.n_embd = kWidth, c.block_size = T, c.pos = pos;
  return c;
}

std::vector<int32_t> random_ids(int64_t n) {
  RandomStream random(1, Purpose::synthetic);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(256));
  return ids;
}

// One file's weights, of a model made for 16 tokens, run at every length; and what models made for other lengths have
nlohmann::json weights(Kind kind, const Work&) {
  nlohmann::json row = {{"parameters", nlohmann::json::array()}, {"longest", 0}, {"same_prefix", true}};
  for (int64_t T : kLengths) row["parameters"].push_back(LanguageModel(small(kind.pos, T), 1).parameters().count());
  LanguageModel model(small(kind.pos, kLengths[0]), 1);
  const std::vector<int32_t> ids = random_ids(256);
  Tensor before;
  for (int64_t T : kLengths) {
    if (kind.pos == Position::learned && T > kLengths[0]) break;  // its table ends: ensure_positions would refuse
    model.ensure_positions(T);
    const Tensor logits = model.logits(std::span(ids).first(static_cast<size_t>(T)), 1);
    for (int64_t t = 0; before.defined() && t < before.rows(); ++t)
      if (!std::equal(before.row(t), before.row(t) + before.channels(), logits.row(t))) row["same_prefix"] = false;
    before = logits, row["longest"] = T;
  }
  return row;
}

struct Passes {  // what went through the model while it lives
  explicit Passes(Probe& probe) {
    probe.look("hook_embed", [this](const Tensor& x) { ++count, positions += x.rows(); });
  }
  int64_t count = 0, positions = 0;
};

// What generate() does for n tokens: its passes, the positions they work on, and its time
nlohmann::json generation(bool cache, int64_t n) {
  LanguageModel model(small(Position::rotary, kPrompt + n), 1);
  GenerateOptions o;
  o.max_new_tokens = n, o.seed = 1, o.cache = cache;
  Probe probe;
  Passes passes(probe);
  const Generated g = generate(model, Tokenizer::bytes(), {std::string(static_cast<size_t>(kPrompt), 'a')}, o)[0];
  return {{"passes", passes.count},
          {"positions", passes.positions},
          {"tokens", std::ssize(g.ids)},
          {"ids", g.ids},
          {"time", g.prompt_seconds + g.generation_seconds}};
}

// The last row of logits with and without a cache after each token of a text
nlohmann::json same_logits(int64_t n, const Work& work) {
  const LanguageModel model(small(Position::rotary, n), 1);
  const std::vector<int32_t> ids = random_ids(n);
  KvCache cache = model.make_cache(1, n);
  int64_t different = 0, logits = 0;
  for (size_t t = 0; t < ids.size(); ++t) {
    const std::span<const int32_t> text(ids);
    const auto kept = next_logits(model, text.subspan(t, 1), &cache, 0);
    const auto again = next_logits(model, text.first(t + 1), nullptr, 0);
    for (size_t v = 0; v < kept.size(); ++v) different += std::memcmp(&kept[v], &again[v], sizeof(float)) != 0;
    logits += std::ssize(kept);
    work.progress(static_cast<double>(t) / static_cast<double>(n));
  }
  return {{"logits", logits}, {"different", different}};
}

std::vector<int64_t> cost_lengths(const Plan& plan) {
  std::vector<int64_t> lengths;
  for (int64_t T = 128; T <= plan.pick<int64_t>(1024, 8192, 16384); T *= 2) lengths.push_back(T);
  return lengths;
}

// Slope of log y over log x by least squares, over the last three points
double exponent(const std::vector<double>& x, const std::vector<double>& y) {
  const size_t n = x.size();
  if (n < 3) return std::nan("");
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (size_t i = n - 3; i < n; ++i) mx += std::log(x[i]) / 3, my += std::log(y[i]) / 3;
  for (size_t i = n - 3; i < n; ++i)
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my), xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  return xy / xx;
}

void judge_weights(Findings& f, const Rows& rows) {
  std::vector<Column> columns{{"positions", Align::left}};
  for (int64_t T : kLengths) columns.push_back({"T = " + std::to_string(T), Align::right});
  columns.push_back({"made for 16, run at", Align::right});
  Table table(columns);
  bool same = true, complete = true;
  for (const Kind& kind : kKinds) {
    const std::string key = std::string("weights ") + kind.name;
    const std::vector<double> n = rows.numbers(key, "parameters");
    if (n.size() != std::size(kLengths)) {
      complete = false;
      continue;
    }
    std::vector<std::string> cells{kind.name};
    for (size_t i = 0; i < n.size(); ++i) {
      cells.push_back(count_text(n[i]));
      const int64_t more_rows = kind.pos == Position::learned ? kLengths[i] - kLengths[0] : 0;
      same = same && n[i] - n[0] == static_cast<double>(kWidth * more_rows);
    }
    const double longest = rows.number(key, "longest");
    same = same && longest == (kind.pos == Position::learned ? 16 : 256) && rows.at(key)["same_prefix"] == true;
    cells.push_back("up to " + count_text(longest));
    table.row(cells);
  }
  f.tables.emplace_back("parameters of a model made for texts of T tokens (two blocks, width 64, 256 bytes)", table);
  if (complete) f.say("Q6 weights", "only the table of learned positions has a row for each", verdict_of(same));
}

void judge_passes(Findings& f, const Rows& rows) {
  auto number = [&](const char* key, const char* field) { return rows.number(key, field); };
  auto whole = [&](const char* key, const char* field) { return rows.count(key, field); };
  Table table({{"", Align::left},
               {"tokens", Align::right},
               {"passes", Align::right},
               {"positions worked on", Align::right},
               {"seconds", Align::right}});
  for (const char* key : {"with cache", "without cache"}) {
    if (rows.has(key))
      table.row({key, whole(key, "tokens"), whole(key, "passes"), whole(key, "positions"),
                 number_text(number(key, "time"), 3)});
  }
  f.tables.emplace_back(fmt::format("generation after a prompt of {} tokens", kPrompt), table);
  if (rows.has("with cache") && rows.has("without cache")) {
    const double n = number("with cache", "tokens"), prompt = kPrompt;
    const bool passes = number("with cache", "passes") == n && number("without cache", "passes") == n;
    f.say("Q1",
          fmt::format("{} passes with a cache, {} without, for {} tokens", whole("with cache", "passes"),
                      whole("without cache", "passes"), whole("with cache", "tokens")),
          verdict_of(passes));
    const bool cost = number("with cache", "positions") == prompt + n - 1 &&
                      number("without cache", "positions") == n * prompt + n * (n - 1) / 2;
    f.say("C4 cost",
          fmt::format("{} against {} positions", whole("with cache", "positions"), whole("without cache", "positions")),
          verdict_of(cost));
  }
  if (rows.has("same logits") && rows.has("with cache") && rows.has("without cache")) {
    const bool text = rows.at("with cache")["ids"] == rows.at("without cache")["ids"];
    f.say("C4 bits",
          fmt::format("{} of {} differ, {} text", whole("same logits", "different"), whole("same logits", "logits"),
                      text ? "the same" : "another"),
          verdict_of(number("same logits", "different") == 0 && text));
  }
}

// Operations of the pass that adds token t to t - 1 others: the new row alone, or all rows again
Figure pass_cost() {
  Figure figure{
      "operations of one pass of a block", "tokens so far", "million", {{"with cache", {}, {}}, {"without", {}, {}}}};
  ModelConfig c = preset("block");
  c.vocab_size = 1;  // the head serves one row either way
  for (int64_t t = 1; t <= 512; t += 7) {
    const double all = count_flops(c, t).forward / 1e6, x = static_cast<double>(t);
    figure.series[0].x.push_back(x), figure.series[0].y.push_back(all - count_flops(c, t - 1).forward / 1e6);
    figure.series[1].x.push_back(x), figure.series[1].y.push_back(all);
  }
  return figure;
}

void judge_parts(Findings& f, const Rows& rows, const Plan& plan) {
  Figure figure{"time of each part (width 128, four heads, best of several)", "T", "milliseconds", {}, true, true};
  Table table({{"part", Align::left},
               {"exponent of T, counted", Align::right},
               {"timed", Align::right},
               {"million operations at the longest", Align::right},
               {"milliseconds", Align::right}});
  bool count = true, time = true;
  double exponents[kParts][2];
  for (size_t p = 0; p < kParts; ++p) {
    std::vector<double> x, operations, ms;
    for (int64_t T : cost_lengths(plan)) {
      const std::string key = "cost " + std::to_string(T);
      const auto counts = rows.numbers(key, "counted"), seconds = rows.numbers(key, "times");
      if (counts.size() != kParts || seconds.size() != kParts) continue;
      x.push_back(static_cast<double>(T)), operations.push_back(counts[p] / 1e6), ms.push_back(seconds[p] * 1e3);
    }
    if (x.size() < 3) return;
    const double counted_as = exponent(x, operations), timed_as = exponent(x, ms);
    exponents[p][0] = counted_as, exponents[p][1] = timed_as;
    count = count && std::fabs(counted_as - (p == kScores ? 2 : 1)) < 0.01;
    time = time && (p == kScores ? timed_as > 1.5 : timed_as < 1.4);
    table.row({kPartNames[p], number_text(counted_as, 3), number_text(timed_as, 3), number_text(operations.back(), 4),
               number_text(ms.back(), 3)});
    figure.series.push_back({kPartNames[p], x, ms});
  }
  f.tables.emplace_back("which part grows how, exponents fitted over the three longest texts", table);
  f.figures.push_back(figure);
  auto range = [&](int kind) {
    double low = HUGE_VAL, high = 0;
    for (size_t p = kScores + 1; p < kParts; ++p)
      low = std::min(low, exponents[p][kind]), high = std::max(high, exponents[p][kind]);
    const std::string lowest = number_text(low, 3), highest = number_text(high, 3);
    return fmt::format("scores {}, the others {}", number_text(exponents[kScores][kind], 3),
                       lowest == highest ? lowest : lowest + " to " + highest);
  };
  f.say("Q6 counted", range(0), verdict_of(count));
  f.say("Q6 timed", range(1), plan.unless_smoke(verdict_of(time)));
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  judge_weights(f, rows);
  judge_passes(f, rows);
  judge_parts(f, rows, plan);
  f.figures.push_back(pass_cost());
  f.notes.push_back("The models here have their first, random weights: what is claimed holds for any.");
  f.notes.push_back(
      "LayerNorm and look-up move numbers and hardly compute: where a longer text leaves a cache, their times tell of "
      "the "
      "memory, and their exponents may lie well above or below 1 for once.");
  return f;
}

}  // namespace

Experiment lengths() {
  Experiment e;
  e.name = "lengths";
  e.question = "What depends on the length of the text: weights, passes, cost?";
  e.claims = {
      {"Q6 weights", "The weights do not depend on T: the same file runs at every length.", "",
       "for five ways to tell positions apart, models made for 16 to 256 tokens have the same number of parameters, "
       "except for one row a position in a learned table; weights made for 16 run at 256 (not past a learned table), "
       "and a longer text changes no bit of the logits before it"},
      {"Q1", "One token a forward pass: 500 tokens are 500 passes, the first of them reads the prompt.", "500",
       "passes counted in the model equal the tokens generated, with and without a cache"},
      {"C4 cost", "A cache changes the cost of a pass.", "",
       "with it the passes work on prompt + n - 1 positions, without it on n prompt + n (n - 1) / 2"},
      {"C4 bits", "A cache changes not one logit.", "",
       "after every token of a text all logits are the same to the bit, and the same text is generated"},
      {"Q6 counted", "Only the scores and the mixing A V are quadratic in T; every other part is linear.", "T² and T",
       "by arithmetic: operations at the three longest texts, of projections, MLP and head as the program counts them, "
       "of scores and mixing, LayerNorm and look-up from their shapes, grow with exponent 2 ± 0.01 for scores and "
       "mixing, 1 ± 0.01 for the others"},
      {"Q6 timed", "The clock agrees.", "",
       "the best times at the three longest texts grow with an exponent above 1.5 for scores and mixing and below 1.4 "
       "for every other part"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (const Kind& kind : kKinds)
      units.push_back(
          {std::string("weights ") + kind.name, 0.2, [kind](const Work& work) { return weights(kind, work); }});
    const int64_t n = plan.pick<int64_t>(50, 500, 500);
    units.push_back({"with cache", 0.2, [n](const Work&) { return generation(true, n); }});
    units.push_back({"without cache", 20, [n](const Work&) { return generation(false, n); }});
    units.push_back({"same logits", 20, [n](const Work& work) { return same_logits(n, work); }});
    const int64_t repeats = plan.pick<int64_t>(2, 7, 7);
    for (int64_t T : cost_lengths(plan)) {
      const auto all = counted_parts(T);
      units.push_back({"cost " + std::to_string(T),
                       std::accumulate(all.begin(), all.end(), 0.0) * static_cast<double>(repeats) / 1e9,
                       [T, repeats](const Work&) -> nlohmann::json {
                         return {{"counted", counted_parts(T)}, {"times", timed_parts(T, repeats)}};
                       }});
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
