// SPDX-License-Identifier: Apache-2.0
// Training with and without the division of the scores by sqrt(d_k): what it costs at five widths of a head, and how it
// goes wrong (chapter, section 2).
#include <algorithm>
#include <cmath>

#include "bary/base/portable_math.h"
#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/report/format.h"
#include "bary/tensor/tap.h"
#include "bary/train/evaluate.h"

namespace bary::lab {
namespace {

struct Width {
  const char *key, *says;
  int64_t d, heads;
  bool ladder;               // the chapter's block; else one head, nothing normalised, no MLP
  const char *worth, *ours;  // points: published; by our PyTorch
};
constexpr Width kWidths[] = {{"32 ladder", "32, four heads, the ladder's block", 32, 4, true, "0, undivided ahead", ""},
                             {"128 ladder", "128, one head, the ladder's block", 128, 1, true, "", ""},
                             {"128", "128, one head", 128, 1, false, "", "13.0"},
                             {"256", "256, one head", 256, 1, false, "18", "16.0"},
                             {"1024", "1024, one head", 1024, 1, false, "17", "19.9"}};

std::string key_of(const Width& w, bool divided) { return std::string(w.key) + (divided ? " divided" : " undivided"); }

Recipe recipe(const Width& w, bool divided, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset(w.ladder ? "block" : "heads");
  r.model.n_head = w.heads, r.model.d_head = w.d, r.model.scale = divided;
  r.batch = w.ladder ? 64 : 32;
  r.steps = w.ladder ? plan.pick<int64_t>(2, 40, 3000) : plan.pick<int64_t>(2, 80, 1500);
  if (plan.budget == Budget::smoke) r.batch = 4;
  r.seed = seed;
  return r;
}

// How sharp the first layer's attention is on a few held-out windows: the scores a softmax is given (of visible pairs;
// divided if the model divides), and the rows with more than one token to choose from.
struct Sharpness {
  double deviation, entropy, hard;  // of scores; nats, mean; share of rows with more than 0.99 on one token
};
struct HeldOut {
  std::vector<int32_t> ids;  // windows side by side
  int64_t count = 0;
};
HeldOut four_windows(TokenSpan text, int64_t T) {
  const SequentialWindows all(text, T, {.full_only = true});
  HeldOut out;
  std::vector<int32_t> in(static_cast<size_t>(T)), unused(in.size());
  for (int64_t i = 0; i < all.count() && out.count < 4; i += std::max<int64_t>(1, all.count() / 4), ++out.count) {
    all.window(i, in, unused);
    out.ids.insert(out.ids.end(), in.begin(), in.end());
  }
  return out;
}

Tensor weight_of(const Parameters& p, const std::string& name) {
  const Parameter* found = p.find(name);
  return found ? Tensor::from(found->shape, p.values_of(*found)) : Tensor();
}

// Queries and keys as the layer makes them, from its input and its own weights: (B H,T,T)
Tensor scores_of(const LanguageModel& model, const HeldOut& windows) {
  const ModelConfig& c = model.config();
  const Parameters& p = model.parameters();
  Tensor x;
  {
    Probe probe;
    probe.look("blocks.0.hook_resid_pre", [&](const Tensor& t) { x = t; });
    model.hidden(windows.ids, windows.count);
  }
  const std::string block = "transformer.h.0.";
  if (c.norm == NormPlace::pre)
    x = layer_norm(x, weight_of(p, block + "ln_1.weight"), weight_of(p, block + "ln_1.bias"));
  auto project = [&](const char* part) {
    return split_heads(linear_by_definition(x, weight_of(p, block + "attn." + part + ".weight"), {}), c.n_head);
  };
  const double size = c.scale ? 1 / std::sqrt(static_cast<double>(c.head_width())) : 1;
  return matmul_nt(project("q_proj"), project("k_proj")) * static_cast<float>(size);
}

Sharpness sharpness(const LanguageModel& model, const HeldOut& windows) {
  const Tensor scores = scores_of(model, windows);
  const int64_t T = scores.dim(1);
  double sum = 0, squares = 0, pairs = 0, entropies = 0, hard = 0, rows = 0;
  for (int64_t r = 0; r < scores.rows(); ++r) {
    const int64_t seen = r % T + 1;
    const float* s = scores.row(r);
    for (int64_t j = 0; j < seen; ++j) sum += s[j], squares += static_cast<double>(s[j]) * static_cast<double>(s[j]);
    pairs += static_cast<double>(seen);
    if (seen < 2) continue;
    const double most = *std::max_element(s, s + seen);
    double total = 0, weighted = 0;  // entropy = log total - mean of (s - most)
    for (int64_t j = 0; j < seen; ++j) {
      const double e = portable::exp(s[j] - most);
      total += e, weighted += e * (s[j] - most);
    }
    entropies += portable::log(total) - weighted / total;
    hard += 1 / total > 0.99;
    ++rows;
  }
  const double mean = sum / pairs;
  return {std::sqrt(squares / pairs - mean * mean), entropies / rows, hard / rows};
}

nlohmann::json train(Recipe r, const Work& work) {
  const TrainData& data = work.text(r.model.block_size);
  r.model.vocab_size = data.vocab_size;
  const int64_t T = r.model.block_size;
  const HeldOut windows = four_windows(data.val, T);
  std::vector<double> steps, deviations, entropies, hards, losses;
  auto see = [&](int64_t step, const LanguageModel& model) {
    const Sharpness s = sharpness(model, windows);
    steps.push_back(static_cast<double>(step));
    deviations.push_back(s.deviation), entropies.push_back(s.entropy), hards.push_back(s.hard);
  };
  see(0, LanguageModel(r.model, r.seed));
  const auto model =
      train_model(r, text_windows(data, T, r.seed), work, [&](const StepSeen& s, const LanguageModel& trained) {
        if (keep_point(s.step, r.steps, 40)) see(s.step, trained), losses.push_back(s.loss);
      });
  return {{"val", evaluate_all(*model, held_out(work), {}, true).perplexity()},
          {"steps", steps},
          {"deviations", deviations},
          {"entropies", entropies},
          {"hards", hards},
          {"losses", losses},
          {"deviation before", deviations.front()},
          {"deviation", deviations.back()},
          {"entropy", entropies.back()},
          {"hard", hards.back()}};
}

void show(const Rows& rows, Findings& f) {
  Table worth({{"d_k", Align::left},
               {"divided", Align::right},
               {"undivided", Align::right},
               {"the division is worth", Align::right},
               {"published", Align::right},
               {"PyTorch", Align::right}});
  Table ends({{"d_k", Align::left},
              {"score deviation before", Align::right},
              {"after", Align::right},
              {"published", Align::right},
              {"entropy, nats", Align::right},
              {"rows over 0.99", Align::right},
              {"published", Align::right}});
  // Over training: the wide heads, and the ladder's two widths, which have twice the updates
  std::vector<Figure> figures;
  for (const char* which : {"", "the ladder's block: "}) {
    const std::string of = which;
    figures.push_back({of + "perplexity of each batch, seed 1", "updates", "perplexity", {}, true, true});
    figures.push_back({of + "standard deviation of the scores, seed 1", "updates", "score", {}, false, true});
    figures.push_back({of + "entropy of the attention, seed 1", "updates", "nats", {}, false, false});
    figures.push_back({of + "rows with more than 0.99 on one token, seed 1", "updates", "share", {}, false, false});
  }
  for (const Width& w : kWidths) {
    const Sample with = rows.sample(key_of(w, true), "val"), without = rows.sample(key_of(w, false), "val");
    worth.row({w.says, with.text(), without.text(), (without - with).text(3), w.worth, w.ours});
    for (bool divided : {true, false}) {
      const std::string key = key_of(w, divided), first = key + "/1";
      if (!rows.has(first)) continue;
      auto s = [&](const char* field) { return rows.sample(key, field); };
      const bool widest = w.d == 1024;
      ends.row({key, s("deviation before").text(3), s("deviation").text(4),
                widest ? (divided ? "→ 3.44" : "21 → 5147") : "", s("entropy").text(3), percent_text(s("hard").mean()),
                widest && !divided ? "99.9%" : ""});
      const std::vector<double> x = rows.numbers(first, "steps");
      Series batches{key, {}, rows.numbers(first, "losses")};  // one less: none is of the first weights
      if (!x.empty()) batches.x.assign(x.begin() + 1, x.end());
      for (double& loss : batches.y) loss = std::exp(loss);
      Figure* of = figures.data() + (w.ladder ? 4 : 0);
      of[0].series.push_back(batches);
      of[1].series.push_back({key, x, rows.numbers(first, "deviations")});
      of[2].series.push_back({key, x, rows.numbers(first, "entropies")});
      of[3].series.push_back({key, x, rows.numbers(first, "hards")});
    }
  }
  f.tables.emplace_back("held-out perplexity, mean ± standard deviation over seeds; PyTorch: our own, one seed", worth);
  f.tables.emplace_back("attention of the first layer on four held-out windows, before and after training", ends);
  f.figures = std::move(figures);
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  show(rows, f);
  const double any = std::numeric_limits<double>::infinity();
  auto worth = [&](const Width& w) {
    return rows.sample(key_of(w, false), "val") - rows.sample(key_of(w, true), "val");
  };
  auto say = [&](const char* id, const std::string& measured, Verdict v) { f.say(id, measured, plan.if_published(v)); };
  say("B5 32", worth(kWidths[0]).text(3), within(worth(kWidths[0]), -1, 1));
  say("B5 256", worth(kWidths[3]).text(3), within(worth(kWidths[3]), 10, any));
  say("B5 1024", worth(kWidths[4]).text(3), within(worth(kWidths[4]), 10, any));
  auto wild = [&](const char* field) { return rows.sample("1024 undivided", field); };
  const Sample before = wild("deviation before"), calm = rows.sample("1024 divided", "deviation");
  if (before.n()) f.say("B6 start", before.text(), within(before, 20, 22.5));
  Sample growth;
  for (size_t i = 0; i < before.values.size(); ++i)
    growth.values.push_back(wild("deviation").values[i] / before.values[i]);
  say("B6 undivided", before.text(3) + " → " + wild("deviation").text() + ", " + percent_text(wild("hard").mean()),
      both(within(growth, 5, any), within(wild("hard"), 0.95, 1)));
  say("B6 entropy", wild("entropy").text(3), within(wild("entropy"), 0, 0.1));
  say("B6 divided", calm.text(3), within(calm, 0, 10));
  f.notes = {
      "\"Five rows at four head widths\" is read as: the ladder's block with four heads of 32 and with one of 128, "
      "3,000 "
      "steps with a batch of 64; then one head of 128, 256 and 1024 with an output matrix, learned positions, no "
      "normalisation and no MLP, 1,500 steps with a batch of 32.",
      "The published 5147 was looked for with one seed, undivided at 1024. At the learning rate of 1e-3 it does not "
      "come (62 "
      "after 200 steps, and as much without the residual path); at 3e-3 the deviation is 164 by then and 214 after 350 "
      "steps; "
      "at 1e-2 it jumps past 5147 with a spike of the loss at step 400, and after 600 steps, where that trial ended, "
      "it is 8021 "
      "with an entropy of 8e-7 and every row over 0.99. A learning rate near 1e-2 would explain it; that the chapter "
      "used one "
      "is not said, and the ladder's 1e-3 is kept.",
      "Scores are those the softmax is given, over visible pairs; rows that see one token only are left out of entropy "
      "and shares."};
  return f;
}

}  // namespace

Experiment scale() {
  Experiment e;
  e.name = "scale";
  e.question = "What does training without the division by sqrt(d_k) cost, and how does it go wrong?";
  const std::string mean = "mean over the seeds at the chapter's steps: ";
  e.claims = {
      {"B5 32", "At d_k 32 the division is worth nothing.", "undivided a hair ahead",
       mean + "held-out perplexity undivided minus divided within ±1"},
      {"B5 256", "At 256 it is worth 18 points.", "18", mean + "at least 10 points"},
      {"B5 1024", "At 1024 it is worth 17 points.", "17", mean + "at least 10 points"},
      {"B6 start", "Undivided at d_k 1024 scores start with a standard deviation of 21.", "21",
       "at initialisation 20 to 22.5, mean over the seeds (two thirds of sqrt(1024) is 21.3)"},
      {"B6 undivided", "Training makes them explode, and every row looks at one token.", "21 → 5147, 99.9 %",
       mean +
           "at d_k 1024 the deviation at least 5 times its start and at least 95 % of rows with more than 0.99 on one "
           "token"},
      {"B6 entropy", "The entropy of the undivided attention falls to 0.", "0", mean + "at d_k 1024 at most 0.1 nats"},
      {"B6 divided", "Divided, scores stay small.", "3.44", mean + "at d_k 1024 a deviation of at most 10"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
      for (const Width& w : kWidths) {
        for (bool divided : {true, false}) {
          const Recipe r = recipe(w, divided, static_cast<uint64_t>(seed), plan);
          units.push_back(training_unit(key_of(w, divided), r, train));
        }
      }
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
