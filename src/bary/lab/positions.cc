// SPDX-License-Identifier: Apache-2.0
// Five ways to tell positions apart, and what becomes of a model that was trained on windows of 64 tokens when it reads
// 128 and 256 (chapter, section 4). What each way is, exactly, is checked beside this, in positions_checks.cc.
#include "bary/lab/positions.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/report/format.h"
#include "bary/train/evaluate.h"

namespace bary::lab {
namespace {

constexpr int64_t kTrained = 64, kLengths[] = {64, 128, 256}, kLongest = 256, kBin = 16;
struct Way {
  const char* name;
  Position pos;
  const char *at_64, *at_256;  // published
};
constexpr Way kWays[] = {{"none", Position::none, "", ""},
                         {"learned", Position::learned, "", ""},
                         {"sinusoidal", Position::sinusoidal, "", ""},
                         {"rotary", Position::rotary, "", ""},
                         {"alibi", Position::alibi, "44.95", "42.49"}};
struct Rescaling {
  const char *name, *says;
  RopeScaling scaling;
};
constexpr Rescaling kRescalings[] = {{"linear", "rotary, position interpolation by 4", RopeScaling::linear},
                                     {"ntk", "rotary, NTK-aware by 4", RopeScaling::ntk},
                                     {"yarn", "rotary, YaRN by 4", RopeScaling::yarn}};

// The same weights under a window of `length`, their rotary positions rescaled or not
LanguageModel read_at(const LanguageModel& trained, int64_t length, RopeScaling scaling = RopeScaling::none) {
  const double factor = scaling == RopeScaling::none ? 1 : static_cast<double>(kLongest / kTrained);
  LanguageModel model(read_as(trained.config(), {length, scaling, factor}), 0);
  copy_parameters(trained.parameters(), model.parameters());
  return model;
}

// Mean loss of positions 0..15, 16..31, ... over all windows of 256
std::vector<double> by_position(const LanguageModel& model, TokenSpan text) {
  const SequentialWindows windows(text, kLongest, {.full_only = true});
  std::vector<std::vector<double>> losses(static_cast<size_t>(windows.count()));
  parallel_tasks(windows.count(), [&](int64_t w, int) {
    std::vector<int32_t> in(kLongest), out(kLongest);
    windows.window(w, in, out);
    const Tensor logits = model.logits(in, 1);
    Tensor bin(Shape{kBin, logits.channels()});
    for (int64_t from = 0; from < kLongest; from += kBin) {
      for (int64_t t = 0; t < kBin; ++t) std::copy_n(logits.row(from + t), logits.channels(), bin.row(t));
      const double loss = cross_entropy(bin, std::span(out).subspan(static_cast<size_t>(from), kBin)).item();
      losses[static_cast<size_t>(w)].push_back(loss / static_cast<double>(kBin));
    }
  });
  std::vector<double> mean(kLongest / kBin, 0.0);
  for (const auto& one : losses)
    for (size_t b = 0; b < mean.size(); ++b) mean[b] += one[b] / static_cast<double>(losses.size());
  return mean;
}

Recipe recipe(Position pos, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model.block_size = kTrained;
  r.model.pos = pos;
  if (pos == Position::learned) r.model.context = kLongest;  // rows past 64 are there and never trained
  r.steps = plan.pick<int64_t>(2, 250, 3000);
  if (plan.budget == Budget::smoke) r.batch = 4;
  r.seed = seed;
  return r;
}

nlohmann::json train(Recipe r, const Work& work) {
  const TrainData& data = work.text(kLongest);
  r.model.vocab_size = data.vocab_size;
  const auto model = train_model(r, text_windows(data, kTrained, r.seed), work);
  const TokenSpan text = held_out(work);
  nlohmann::json row;
  auto read = [&](const std::string& name, RopeScaling scaling) {
    for (int64_t length : kLengths)
      row[name + std::to_string(length)] = evaluate_all(read_at(*model, length, scaling), text, {}, true).perplexity();
    row[name + "by position"] = by_position(read_at(*model, kLongest, scaling), text);
  };
  read("", RopeScaling::none);
  if (r.model.pos == Position::rotary)
    for (const Rescaling& s : kRescalings) read(std::string(s.name) + " ", s.scaling);
  return row;
}

Sample ratio(const Sample& a, const Sample& b) {
  Sample r;
  for (size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) r.values.push_back(a.values[i] / b.values[i]);
  return r;
}

void show_lengths(const Rows& rows, Findings& f) {
  Table table({{"trained on 64 tokens", Align::left},
               {"read at 64", Align::right},
               {"published", Align::right},
               {"at 128", Align::right},
               {"at 256", Align::right},
               {"published", Align::right}});
  Figure lengths{"held-out perplexity by the window read", "tokens in the window", "perplexity", {}, true, true};
  Figure inside{"held-out loss inside a window of 256, seed 1", "position", "nats a token", {}, false, false};
  auto add = [&](const Way& w, const std::string& says, const std::string& prefix) {
    Sample at[3];
    Series s{says, {}, {}}, curve{says, {}, rows.numbers(std::string(w.name) + "/1", prefix + "by position")};
    for (size_t i = 0; i < 3; ++i) {
      at[i] = rows.sample(w.name, prefix + std::to_string(kLengths[i]));
      s.x.push_back(static_cast<double>(kLengths[i])), s.y.push_back(at[i].mean());
    }
    if (at[0].n() == 0) return;
    const bool plain = prefix.empty();
    table.row({says, at[0].text(), plain ? w.at_64 : "", at[1].text(), at[2].text(), plain ? w.at_256 : ""});
    for (size_t b = 0; b < curve.y.size(); ++b) curve.x.push_back((static_cast<double>(b) + 0.5) * kBin);
    lengths.series.push_back(s), inside.series.push_back(curve);
  };
  for (const Way& w : kWays) add(w, w.name, "");
  for (const Rescaling& s : kRescalings) add(kWays[3], s.says, std::string(s.name) + " ");
  f.tables.emplace_back(
      "held-out perplexity of the same weights at three windows, mean ± standard deviation over seeds", table);
  f.figures.push_back(lengths), f.figures.push_back(inside);
}

void say_trained(const Rows& rows, const Plan& plan, Findings& f) {
  const double any = std::numeric_limits<double>::infinity();
  auto at = [&](const char* way, const std::string& field) { return rows.sample(way, field); };
  auto say = [&](const char* id, const std::string& measured, Verdict v) { f.say(id, measured, plan.if_published(v)); };
  auto path = [&](const char* way) {
    return at(way, "64").text() + " → " + at(way, "128").text() + " → " + at(way, "256").text();
  };
  auto grows = [&](const char* way) { return ratio(at(way, "256"), at(way, "64")); };
  Verdict wins = Verdict::holds;
  std::string others;
  for (const char* way : {"none", "sinusoidal", "rotary", "alibi"}) {
    wins = both(wins, larger(at(way, "64"), at("learned", "64")));
    others += std::string(", ") + way + " " + at(way, "64").text();
  }
  say("P2 learned", "learned " + at("learned", "64").text() + others, wins);
  say("P2 cliff", path("learned"),
      both(within(ratio(at("learned", "128"), at("learned", "64")), 1.5, any), within(grows("learned"), 2, any)));
  say("P2 sinusoidal", path("sinusoidal"), within(grows("sinusoidal"), 1.1, any));
  say("P2 rotary", path("rotary"),
      both(within(grows("rotary"), 1, any),
           both(larger(grows("learned"), grows("rotary")), larger(grows("sinusoidal"), grows("rotary")))));
  say("P2 ALiBi", path("alibi"), larger(at("alibi", "64"), at("alibi", "256")));
  const char* ids[] = {"P5 interpolation", "P5 NTK", "P5 YaRN"};
  for (size_t i = 0; i < 3; ++i) {
    const Sample rescaled = at("rotary", std::string(kRescalings[i].name) + " 256");
    say(ids[i], rescaled.text() + " against " + at("rotary", "256").text(), larger(at("rotary", "256"), rescaled));
  }
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  show_lengths(rows, f);
  say_position_checks(rows, f);
  say_trained(rows, plan, f);
  f.notes = {
      "Chosen where the text is silent: the ladder's one block (477,696 parameters with its 128 learned positions), "
      "windows of 64 and a batch of 64, the ladder's 3,000 steps; windows read do not overlap, so a longer window also "
      "means more tokens with a long past.",
      "The learned table has 256 rows; those past 64 are as they were drawn, N(0,1), but for the 3 % that weight decay "
      "takes.",
      "Rotary positions are rescaled by 4 at every length, with no further training (temperature of YaRN included)."};
  if (plan.published_setting() && rows.has("rotary/1") && f.verdict("P5 interpolation") != Verdict::holds)
    f.notes.push_back(
        "Why P5 interpolation does not hold: it divides every angle, also those that tell neighbours apart, and the "
        "model reads even its own 64 tokens hardly better than 256. Chen et al. (2023) train on after it. NTK and YaRN "
        "leave the fast pairs as they were.");
  return f;
}

}  // namespace

Experiment positions() {
  Experiment e;
  e.name = "positions";
  e.question = "How does a model learn where a token stands, and what happens past the window it was trained on?";
  const std::string mean = "mean held-out perplexity over the seeds, trained at 64 tokens: ";
  e.claims = {
      {"P1", "Without positions and mask attention does not know the order of its tokens; positions tell it.", "",
       "one block on 32 tokens in another order: outputs moved along differ by at most 1e-5 of the largest; with "
       "learned "
       "or rotary positions by at least 1e-2"},
      {"P1 mask", "One masked layer reads its prefix as a bag; two do not.", "",
       "prefix of 31 tokens shuffled: the last output moves by at most 1e-5 of the largest; with two blocks by at "
       "least "
       "1e-3"},
      {"P2 learned", "Learned positions win at the window trained on.", "wins at 64",
       mean + "learned lowest of the five at 64"},
      {"P2 cliff", "Past that window they fall off a cliff.", "falls off a cliff",
       mean + "learned at 128 at least 1.5 times, at 256 at least twice its own at 64"},
      {"P2 sinusoidal", "Sinusoidal positions do not extrapolate.", "does not extrapolate",
       mean + "sinusoidal at 256 at least 1.1 times its own at 64"},
      {"P2 rotary", "Rotary positions degrade, but gracefully.", "degrades gracefully",
       mean + "rotary at 256 above its own at 64, by a smaller factor than learned and sinusoidal"},
      {"P2 ALiBi", "ALiBi improves with a longer window.", "44.95 → 42.49", mean + "ALiBi at 256 below its own at 64"},
      {"P3", "A rotary score depends on the distance alone, and nothing is added.", "",
       "one query and one key at 256 positions, plain and rescaled: scores along a diagonal differ by at most 1e-5 of "
       "|q| |k|, at distance 0 the score is q.k, and over distances it moves by at least a tenth"},
      {"P4", "ALiBi is a linear penalty on distance with a slope of its own for each head.", "",
       "with all scores 0 and eight heads: log weights fall by exactly 2^-1 ... 2^-8 a token, to 1e-5"},
      {"P5 interpolation", "A longer window by dividing positions.", "", mean + "at 256 below plain rotary"},
      {"P5 NTK", "A longer window by a larger base.", "", mean + "at 256 below plain rotary"},
      {"P5 YaRN", "A longer window by slowing the slow pairs only, with a temperature.", "",
       mean + "at 256 below plain rotary"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units = position_checks();
    for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
      for (const Way& w : kWays) {
        const Recipe r = recipe(w.pos, static_cast<uint64_t>(seed), plan);
        units.push_back(training_unit(w.name, r, train));
      }
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
