// SPDX-License-Identifier: Apache-2.0
// Dropout: the places where it sits, that it is off at evaluation, and what it does to two blocks that over-fit.
#include <algorithm>
#include <cmath>

#include "bary/lab/list.h"
#include "bary/lab/random_tensor.h"
#include "bary/lab/training.h"
#include "bary/report/format.h"
#include "bary/tensor/tap.h"
#include "bary/train/evaluate.h"

namespace bary::lab {
namespace {

constexpr double kShares[] = {0, 0.1, 0.2};

std::string row_name(double p) { return fmt::format("p {}", p); }

Recipe recipe(double p, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset("two-blocks");
  r.model.dropout = p;
  r.steps = plan.pick<int64_t>(2, 75, 3000);
  if (plan.budget == Budget::smoke) r.batch = 2;
  r.seed = seed;
  return r;
}

// As many tokens as the text has to learn from, in small batches: 64 windows an update would end after 50 of them.
constexpr int64_t kOnceBatch = 4, kTrainTokens = 413'784;
Recipe once_recipe(double p, uint64_t seed, const Plan& plan) {
  Recipe r = recipe(p, seed, plan);
  r.batch = kOnceBatch;
  r.steps = plan.pick<int64_t>(2, 200, kTrainTokens / (kOnceBatch * r.model.block_size));
  return r;
}

nlohmann::json run(Recipe r, const Work& work) {
  const TrainData& data = work.text(r.model.block_size);
  r.model.vocab_size = data.vocab_size;
  const bool few = work.plan.budget == Budget::smoke;
  std::vector<double> seen, val;
  nlohmann::json row;
  auto model =
      train_model(r, text_windows(data, r.model.block_size, r.seed), work, [&](const StepSeen& s, LanguageModel& m) {
        if (s.step > 1 && keep_point(s.step, r.steps, 20))
          seen.push_back(static_cast<double>(s.step)),
              val.push_back(evaluate_some(m, data.val, {}, few ? 4 : 64, 1).loss());
      });
  const Perplexities p = perplexities(*model, data, few);
  row["seen"] = seen, row["val_losses"] = val;
  row["val"] = p.val, row["train"] = p.train, row["gap"] = std::log(p.val / p.train);
  return row;
}

std::vector<int32_t> random_text(int64_t n) {
  RandomStream random(1, Purpose::synthetic);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(1024));
  return ids;
}

// The taps of a pass that change where dropout sits: the sum of embeddings, and the residual path around each part
std::vector<Tensor> watched(const LanguageModel& model, const std::vector<int32_t>& ids, bool training) {
  const char* names[] = {"hook_embed",
                         "blocks.0.hook_resid_pre",
                         "blocks.0.hook_resid_mid",
                         "blocks.0.hook_resid_post",
                         "blocks.1.hook_resid_mid",
                         "blocks.1.hook_resid_post"};
  std::vector<Tensor> seen(std::size(names));
  Probe probe;
  for (size_t i = 0; i < std::size(names); ++i) probe.look(names[i], [&seen, i](const Tensor& x) { seen[i] = x; });
  Pass pass;
  pass.training = training, pass.seed = 1;
  model.hidden(ids, 4, pass);
  return seen;
}

int64_t count_if(const Tensor& a, const Tensor& b, const std::function<bool(float, float)>& test) {
  int64_t n = 0;
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int64_t c = 0; c < a.channels(); ++c) n += test(a.row(r)[c], b.row(r)[c]);
  return n;
}

// Attention over 64 identity rows with an identity for W_v and no output matrix gives back its own weights: after their
// dropout and then the output's, on and below the diagonal (0, 0) are left with probability (1 - p)^2.
nlohmann::json weight_site(double p) {
  const int64_t T = 64;
  AttentionConfig c;
  c.n_embd = T, c.n_head = 1, c.n_kv_head = 1, c.d_head = T, c.proj = false, c.dropout = p, c.pos = Position::none;
  Parameters parameters(1);
  const Attention attend(Scope{&parameters, "", ""}, c);
  Tensor x = Tensor::zeros({1, T, T});
  std::span<float> w = parameters.values_of(*parameters.find("v_proj.weight"));
  std::fill(w.begin(), w.end(), 0.0f);
  for (int64_t t = 0; t < T; ++t) x.row(t)[t] = 1, w[static_cast<size_t>(t * T + t)] = 1;
  parameters.changed();
  Pass pass;
  pass.training = true, pass.seed = 1;
  int64_t zeros = 0, all = 0;
  for (uint64_t step = 0; step < 20; ++step) {
    pass.step = step;
    const Tensor y = attend(x, pass, nullptr);
    for (int64_t t = 0; t < T; ++t) zeros += std::count(y.row(t), y.row(t) + t + 1, 0.0f), all += t + 1;
  }
  return {{"site", "attention weights, then the output"},
          {"zeros", zeros},
          {"all", all},
          {"expected", 1 - (1 - p) * (1 - p)}};
}

nlohmann::json sites(double p, const Work&) {
  ModelConfig c = preset("two-blocks");
  c.dropout = p;
  const LanguageModel model(c, 1);
  const std::vector<int32_t> ids = random_text(4 * c.block_size);
  const auto on = watched(model, ids, true), off = watched(model, ids, false);
  nlohmann::json all = nlohmann::json::array();
  const Tensor nothing = Tensor::zeros(on[0].shape());
  auto add = [&](const char* site, const Tensor& before, const Tensor& after) {
    const int64_t zeros = count_if(before, after, [](float a, float b) { return a == b; });
    all.push_back({{"site", site}, {"zeros", zeros}, {"all", before.shape().volume()}, {"expected", p}});
  };
  add("sum of embeddings", nothing, on[0]);
  add("attention's output, block 1", on[1], on[2]);
  add("MLP's output, block 1", on[2], on[3]);
  add("attention's output, block 2", on[3], on[4]);
  add("MLP's output, block 2", on[4], on[5]);
  all.push_back(weight_site(p));
  const float scale = 1.0f / (1.0f - static_cast<float>(p));
  const int64_t wrong = count_if(on[0], off[0], [&](float a, float b) { return a != 0 && a != b * scale; });
  return {{"sites", all}, {"wrongly_scaled", wrong}};
}

nlohmann::json evaluation(const Work&) {
  ModelConfig c = preset("two-blocks");
  const LanguageModel plain(c, 1);
  c.dropout = 0.2;
  const LanguageModel dropped(c, 1);  // initial values are named by the seed and the parameter: the same
  const std::vector<int32_t> ids = random_text(c.block_size);
  Pass training;
  training.training = true;
  auto different = [&](const Tensor& a, const Tensor& b) {
    return count_if(a, b, [](float x, float y) { return x != y; });
  };
  const Tensor y = plain.logits(ids, 1);
  return {{"evaluation", different(y, dropped.logits(ids, 1))},
          {"training", different(y, dropped.logits(ids, 1, training))},
          {"all", y.shape().volume()}};
}

void judge_sites(Findings& f, const Rows& rows) {
  Table table({{"where", Align::left},
               {"p", Align::right},
               {"zeros", Align::right},
               {"expected", Align::right},
               {"standard error", Align::right}});
  bool holds = true, complete = true;
  double farthest = 0;  // in standard errors
  for (double p : {0.1, 0.2}) {
    const std::string key = "sites " + row_name(p);
    if (!rows.has(key)) {
      complete = false;
      continue;
    }
    holds = holds && rows.at(key)["wrongly_scaled"] == 0;
    for (const auto& site : rows.at(key)["sites"]) {
      const double n = number_in(site["all"]), expected = number_in(site["expected"]),
                   share = number_in(site["zeros"]) / n;
      const double error = std::sqrt(expected * (1 - expected) / n);
      farthest = greater_of(farthest, std::fabs(share - expected) / error);
      table.row({site["site"].get<std::string>(), fmt::format("{}", p), percent_text(share), percent_text(expected),
                 fmt::format("{:.2f}%", 100 * error)});
    }
  }
  f.tables.emplace_back("where a training pass of two blocks has zeros", table);
  if (complete)
    f.say("N4 sites", fmt::format("at most {} standard errors off", number_text(farthest, 2)),
          verdict_of(holds && farthest <= 4));
  if (!rows.has("evaluation")) return;
  const auto number = [&](const char* field) { return rows.number("evaluation", field); };
  const double share = number("training") / number("all");
  f.say(
      "N4 off",
      fmt::format("{} logits differ in evaluation, {} of them in training", number("evaluation"), percent_text(share)),
      verdict_of(number("evaluation") == 0 && share > 0.99));
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  judge_sites(f, rows);
  Table table({{"two blocks", Align::left},
               {"held out", Align::right},
               {"train", Align::right},
               {"log ratio", Align::right},
               {"held out after one pass", Align::right}});
  Figure curves{"held-out loss (64 windows), seed 1", "updates", "nats a token", {}, true, false};
  for (double p : kShares) {
    const std::string name = row_name(p), first = name + "/1";
    if (!rows.has(first) && !rows.has("once " + first)) continue;
    auto text = [&](const char* field, int digits) { return rows.sample(name, field).text(digits); };
    table.row({name, text("val", 4), text("train", 4), text("gap", 3), rows.sample("once " + name, "val").text()});
    curves.series.push_back({name, rows.numbers(first, "seen"), rows.numbers(first, "val_losses")});
  }
  f.tables.emplace_back(
      "perplexity, mean ± standard deviation over seeds (two blocks without dropout: published 40.57 "
      "held out, 14.49 train)",
      table);
  f.figures.push_back(curves);
  auto of = [&](double p, const char* field) { return rows.sample(row_name(p), field); };
  const Sample gain = of(0, "val") - of(0.1, "val");
  f.say("N4 helps", gain.text(3) + " points better with 0.1", plan.if_published(larger(of(0, "val"), of(0.1, "val"))));
  f.say("N4 gap", fmt::format("{}, {}, {}", of(0, "gap").text(3), of(0.1, "gap").text(3), of(0.2, "gap").text(3)),
        plan.if_published(both(larger(of(0, "gap"), of(0.1, "gap")), larger(of(0.1, "gap"), of(0.2, "gap")))));
  auto once = [&](double p) { return rows.sample("once " + row_name(p), "val"); };
  f.say("N4 once", fmt::format("{} and {} points worse", (once(0.1) - once(0)).text(3), (once(0.2) - once(0)).text(3)),
        plan.if_published(both(larger(once(0.1), once(0)), larger(once(0.2), once(0)))));
  f.notes.push_back(
      "The text gives no figures for p = 0.1 and 0.2. The chapter's 3,000 updates read its training text "
      "59 times. The single pass is 808 updates of four windows, with the same learning rate; windows are drawn at "
      "random, "
      "so one pass is as many tokens as the text has.");
  return f;
}

}  // namespace

Experiment dropout() {
  Experiment e;
  e.name = "dropout";
  e.revision = 2;  // the single pass in small batches
  e.question = "Where does dropout sit, and when does it help?";
  e.claims = {
      {"N4 sites",
       "Dropout sits on the attention weights after the softmax, on each part's output before the residual addition, "
       "and on the sum of embeddings.",
       "",
       "for p = 0.1 and 0.2 the share of zeros at each of these places is within four standard errors of p (of "
       "1 - (1 - p)^2 where two follow each other), and what is kept of the embeddings is divided by exactly 1 - p"},
      {"N4 off", "It is off at evaluation.", "",
       "a model with p = 0.2 gives in evaluation the logits of the same weights without dropout, to the bit, and other "
       "ones (99 % of them) in training"},
      {"N4 helps", "Over-fitting is what it is for.", "",
       "two blocks, 3,000 updates, mean over the seeds: held-out perplexity with p = 0.1 below that without"},
      {"N4 gap", "The more dropout, the closer are train and held-out text.", "",
       "the same runs: log(held out / train) falls from p = 0 to 0.1 to 0.2"},
      {"N4 once", "Training that sees its text once has no use for it.", "",
       "after as many tokens as the training text has, in batches of four windows, held-out perplexity without dropout "
       "is below that with 0.1 "
       "and with 0.2 (mean over the seeds)"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units{{"evaluation", 0.2, evaluation}};
    for (double p : {0.1, 0.2})
      units.push_back({"sites " + row_name(p), 0.5, [p](const Work& work) { return sites(p, work); }});
    for (int64_t seed = 1; seed <= plan.runs(); ++seed)
      for (double p : kShares) {
        const auto s = static_cast<uint64_t>(seed);
        units.push_back(training_unit("once " + row_name(p), once_recipe(p, s, plan), run));
        units.push_back(training_unit(row_name(p), recipe(p, s, plan), run));
      }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
