// SPDX-License-Identifier: Apache-2.0
// Training without the mask: every position may look at the token it has to name. The loss collapses, also on text the
// model has never seen, and what it has learned is of no use where the next token is not there yet: in generation.
#include <algorithm>
#include <cmath>

#include "bary/base/quote.h"
#include "bary/generate/generate.h"
#include "bary/inspect/capture.h"
#include "bary/lab/list.h"
#include "bary/lab/pattern_map.h"
#include "bary/lab/training.h"
#include "bary/report/format.h"
#include "bary/tensor/tap.h"
#include "bary/train/evaluate.h"

namespace bary::lab {
namespace {

constexpr const char* kPattern = "blocks.0.attn.hook_pattern";
constexpr int64_t kPrefixes[] = {16, 64, 128};  // tokens given, none of them the answer

Recipe recipe(Mask mask, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset("block");
  r.model.mask = mask;
  r.seed = seed;
  return shortened(r, plan, 700);
}

// Mean loss at the last position of `count` held-out windows: the next token lies outside, as in generation.
double prefix_loss(const LanguageModel& model, const TrainData& data, int64_t T, int64_t count) {
  const Windows windows(data.val, T, "the held-out part");
  std::vector<int32_t> ids(static_cast<size_t>(T)), targets(ids.size());
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    windows.window(1, Purpose::eval_batch, 0, static_cast<uint64_t>(i), ids, targets);
    std::fill(targets.begin(), targets.end() - 1, -1);
    sum += model.loss(ids, targets, 1).sum;
  }
  return sum / static_cast<double>(count);
}

// The pattern's first positions, and its mean weight on the next token over all of them
void add_pattern(nlohmann::json& row, const LanguageModel& model, const TrainData& data) {
  std::vector<int32_t> ids(static_cast<size_t>(model.config().block_size));
  data.val.copy(0, ids);
  const Tensor pattern = attention_patterns(model, ids).front();
  const int64_t T = pattern.dim(2);
  double next = 0;
  for (int64_t t = 0; t + 1 < T; ++t) next += head_mean(pattern, t, t + 1) / static_cast<double>(T - 1);
  row["map"] = corner(pattern), row["next"] = next;
}

std::string sample(LanguageModel& model, const TrainData& data, int64_t tokens) {
  if (!data.tokenizer) return "";
  std::vector<int32_t> start(kPrefixes[0]);
  data.val.copy(0, start);
  GenerateOptions o;
  o.max_new_tokens = tokens;
  o.seed = 1;
  return quote(generate(model, *data.tokenizer, {data.tokenizer->decode(start)}, o)[0].text, 240);
}

nlohmann::json run(const Recipe& r, const Work& work) {
  auto [model, row] = train_on_text(r, work);
  const TrainData& data = work.text(r.model.block_size);
  for (const char* part : {"val", "train"}) row[part] = std::log(row[part].get<double>());  // nats a token
  const int64_t count = work.plan.pick<int64_t>(4, 400, 2000);
  double mean = 0;
  for (int64_t T : kPrefixes) {
    const double loss = prefix_loss(*model, data, T, count);
    row["prefix " + std::to_string(T)] = loss;
    mean += loss / static_cast<double>(std::size(kPrefixes));
  }
  row["prefix"] = mean;
  row["sample"] = sample(*model, data, work.plan.pick<int64_t>(4, 60, 60));
  add_pattern(row, *model, data);
  return row;
}

// A causal pattern before any training, where no weight is small enough to vanish by itself
nlohmann::json diagonal(const Work&) {
  ModelConfig c = preset("block");
  const LanguageModel model(c, 1);
  std::vector<int32_t> ids(static_cast<size_t>(c.block_size));
  RandomStream random(1, Purpose::synthetic);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(c.vocab_size)));
  double above = 0, seen = 1, self = 1;
  Probe probe;
  probe.look(kPattern, [&](const Tensor& p) {
    for (int64_t r = 0; r < p.rows(); ++r) {
      const int64_t t = r % c.block_size;
      for (int64_t j = 0; j < c.block_size; ++j) {
        const double w = static_cast<double>(p.row(r)[j]);
        if (j > t) above = greater_of(above, w);
        if (j <= t) seen = lesser_of(seen, w);
        if (j == t) self = lesser_of(self, w);
      }
    }
  });
  model.hidden(ids, 1);
  return {{"above", above}, {"seen", seen}, {"self", self}};
}

void show(Findings& f, const Rows& rows, const Plan& plan) {
  Table table({{"trained", Align::left},
               {"loss, train", Align::right},
               {"held out", Align::right},
               {"after 16 tokens", Align::right},
               {"64", Align::right},
               {"128", Align::right},
               {"weight on the next token", Align::right}});
  Figure curves{"loss of each batch, seed 1", "updates", "nats a token", {}, true, true};
  for (const char* name : {"no mask", "causal mask"}) {
    const std::string first = std::string(name) + "/1";
    if (!rows.has(first)) continue;
    auto text = [&](const char* field) { return rows.sample(name, field).text(3); };
    table.row({name, text("train"), text("val"), text("prefix 16"), text("prefix 64"), text("prefix 128"),
               percent_text(rows.sample(name, "next").mean())});
    curves.series.push_back({name, rows.numbers(first, "steps"), rows.numbers(first, "losses")});
    f.maps.push_back(position_map(std::string("who looks where, mean over four heads, seed 1: ") + name,
                                  rows.numbers(first, "map")));
    const std::string text_of = rows.at(first).value("sample", std::string());
    if (!text_of.empty())
      f.notes.push_back(std::string("Generated by the model trained with ") + name + ": " + text_of);
  }
  f.tables.emplace_back("nats a token: read side by side, and given only what comes before", table);
  f.figures.push_back(curves);
  f.notes.push_back(
      "The last position of a window can't see its answer even without the mask: with 128 positions and "
      "about four nats there, the loss cannot fall far below 0.03.");
  f.notes.push_back(
      "After exactly 128 tokens the unmasked model does better than after fewer: the end of its window is "
      "the one place where it had to guess in training.");
  if (plan.budget != Budget::chapter)
    f.notes.push_back(
        "At this budget (found by trying what collapses within a minute) batches of 8 (quick) and a learning rate of "
        "3e-3, for both models; the chapter's "
        "budget has its batch of 64, its 1e-3 and its 3,000 updates.");
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  show(f, rows, plan);
  const Sample open = rows.sample("no mask", "val"), masked = rows.sample("causal mask", "val");
  const Sample worse = rows.sample("no mask", "prefix") - rows.sample("causal mask", "prefix");
  f.say("Q5 collapse", open.text(3), plan.unless_smoke(at_most(open, 0.1)));
  f.say("Q5 mask", masked.text(3), plan.unless_smoke(at_least(masked, 2)));
  f.say("Q5 worthless", worse.text(3) + " nats worse", plan.unless_smoke(at_least(worse, 1)));
  if (rows.has("diagonal")) {
    const double above = rows.number("diagonal", "above"), seen = rows.number("diagonal", "seen");
    f.say("Q5 diagonal",
          fmt::format("weights above it {}, on it {} or more", above, number_text(rows.number("diagonal", "self"), 2)),
          verdict_of(above == 0 && seen > 0));
  }
  return f;
}

}  // namespace

Experiment leak() {
  Experiment e;
  e.name = "leak";
  e.question = "What happens without the mask?";
  const std::string mean = "mean over the seeds, one block trained on the text: ";
  e.claims = {
      {"Q5 collapse", "Without the mask the loss collapses, on unseen text too: the answer is read off the input.", "0",
       mean + "held-out loss at most 0.1 nats a token"},
      {"Q5 mask", "With the mask the same model, trained alike, has to guess.", "",
       mean + "held-out loss at least 2 nats a token"},
      {"Q5 worthless", "What was learned without the mask is worthless where the next token is not there yet.", "",
       mean + "given only a prefix of held-out text (16, 64 and 128 tokens, averaged), the loss on the token after it "
              "is at least 1 nat above that of the model trained with the mask"},
      {"Q5 diagonal", "The mask keeps the diagonal: position i sees 1 to i, itself included.", "",
       "in every head of a causal block each weight above the diagonal is exactly 0 and each on or below it above 0"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units{{"diagonal", 0.1, diagonal}};
    for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
      for (Mask mask : {Mask::full, Mask::causal}) {
        const Recipe r = recipe(mask, static_cast<uint64_t>(seed), plan);
        units.push_back(training_unit(mask == Mask::full ? "no mask" : "causal mask", r, run));
      }
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
