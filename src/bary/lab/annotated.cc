// SPDX-License-Identifier: Apache-2.0
// The copy task of The Annotated Transformer at its own size: ten tokens of 1 to 10, the first of them always 1, to be
// written again; 400 updates of 80 sequences. The page decodes a single sequence; here a thousand are counted.
#include <cmath>

#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/model/count.h"
#include "bary/model/seq2seq.h"
#include "bary/report/format.h"
#include "bary/train/chosen.h"

namespace bary::lab {
namespace {

constexpr int64_t kParameters = 14'731'787, kLength = 10;

// Adam, its rate 0.5 x 512^-0.5 x min(n^-0.5, n x 400^-1.5) at update n, no decay of weights
Recipe recipe(uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset("annotated");
  r.steps = plan.pick<int64_t>(1, 20, 400), r.batch = plan.pick<int64_t>(2, 80, 80);
  r.learning_rate = 0.5 / std::sqrt(512.0 * 400.0), r.warmup = 399, r.course = ScheduleKind::inv_sqrt;
  r.adamw.beta1 = 0.9, r.adamw.beta2 = 0.98, r.adamw.eps = 1e-9, r.adamw.weight_decay = 0;
  r.seed = seed;
  return r;
}

// Sequences first, first + 1, ... of a stream. There is neither padding nor an end: the target's inputs are its tokens
// but the last, what counts its tokens but the first.
PairBatch sequences(uint64_t seed, uint64_t stream, int64_t first, int64_t count) {
  PairBatch batch;
  for (int64_t s = 0; s < count; ++s) {
    RandomStream random(seed, Purpose::synthetic, stream, static_cast<uint64_t>(first + s));
    std::vector<int32_t> ids{1};
    while (std::ssize(ids) < kLength) ids.push_back(1 + static_cast<int32_t>(random.below(10)));
    batch.source.ids.insert(batch.source.ids.end(), ids.begin(), ids.end());
    batch.inputs.ids.insert(batch.inputs.ids.end(), ids.begin(), ids.end() - 1);
    batch.targets.insert(batch.targets.end(), ids.begin() + 1, ids.end());
  }
  batch.source.lengths.assign(static_cast<size_t>(count), kLength);
  batch.inputs.lengths.assign(static_cast<size_t>(count), kLength - 1);
  return batch;
}

nlohmann::json run(const Recipe& r, const Work& work) {
  const auto model = make_seq2seq(r.model, r.seed);
  nlohmann::json row;
  auto gradient_of = [&](int64_t it, const Pass& pass, GradientSum& into) {
    auto loss_of = [&](int64_t first, int64_t count, const Pass& mine) {
      return model->loss(sequences(r.seed, 0, it * r.batch + first, count), mine);
    };
    return into.compute(r.batch, kLength, loss_of, pass);
  };
  train_updates(r, *model, gradient_of, work, keep_losses(row, r.steps));
  const int64_t held_out = work.plan.pick<int64_t>(4, 1000, 1000), together = 50;
  Evaluation all;
  for (int64_t first = 0; first < held_out; first += together) {
    const PairBatch batch = sequences(r.seed, 1, first, std::min(together, held_out - first));
    add(judged(model->logits(batch), batch.targets), all);
  }
  row["parameters"] = model->parameters().count();
  row["exact"] = all.exact_match(), row["right"] = all.accuracy(), row["loss"] = all.loss();
  return row;
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  const int64_t counted = count_parameters(preset("annotated")).total;
  const double held = rows.number("copy/1", "parameters");
  const bool exact = counted == kParameters && held == static_cast<double>(kParameters);
  f.say("W7 parameters", grouped(counted), rows.has("copy/1") ? verdict_of(exact) : Verdict::undecided);
  auto percent = [&](const char* field) {
    Sample s = rows.sample("copy", field);
    for (double& v : s.values) v *= 100;
    return s;
  };
  const Sample right = percent("right"), whole = percent("exact");
  auto at_chapter = [&](Verdict v) { return plan.budget == Budget::chapter ? v : Verdict::undecided; };
  f.say("W7 copies", whole.n() ? fmt::format("{} %", whole.text()) : "", at_chapter(at_least(whole, 95)));
  f.say("W7 tokens", right.n() ? fmt::format("{} %", right.text()) : "", at_chapter(at_least(right, 99)));
  Table t({{"updates", Align::right},
           {"parameters", Align::right},
           {"sequences right %", Align::right},
           {"tokens right %", Align::right},
           {"chance: tokens %", Align::right},
           {"nats a token", Align::right}});
  const auto steps = rows.numbers("copy/1", "steps");
  if (!steps.empty())
    t.row({number_text(steps.back(), 4), grouped(counted), whole.text(), right.text(), "10",
           rows.sample("copy", "loss").text(3)});
  f.tables.emplace_back("1,000 sequences that were not trained on, dropout off", t);
  Figure curve{"loss of each batch, dropout on, task/seed", "updates", "nats a token", {}, false, true};
  for (const std::string& key : rows.keys("copy"))
    if (rows.has(key)) curve.series.push_back({key, rows.numbers(key, "steps"), rows.numbers(key, "losses")});
  f.figures.push_back(curve);
  f.notes = {
      "Width 512, eight heads, two blocks a side, dropout 0.1, eleven tokens, no label smoothing; norm before each "
      "part with one more at the end, as the page's code has it (its text has it after).",
      "Held out means drawn from another stream: of the 10^9 sequences there are, 32,000 were trained on. A sequence "
      "counts as right where greedy decoding from its first token writes the nine others.",
      "67 GFLOP an update: the quick budget does 20 of the 400, which shows the time and decides nothing."};
  return f;
}

}  // namespace

Experiment annotated() {
  Experiment e;
  e.name = "annotated";
  e.question = "Does The Annotated Transformer's own recipe copy?";
  e.claims = {
      {"W7 parameters", "Its encoder-decoder has 14,731,787 parameters.", "",
       "exactly so many are counted from the configuration, and held by the model that was built"},
      {"W7 copies", "After its 400 updates it copies what it has not seen.", "",
       "at least 95 % of 1,000 held-out sequences are written without a mistake (mean over seeds)"},
      {"W7 tokens", "It gets almost every token right.", "", "at least 99 % of their tokens (mean over seeds)"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
      const Recipe r = recipe(static_cast<uint64_t>(seed), plan);
      units.push_back(
          {"copy/" + std::to_string(seed), recipe_gflop(r, kLength), [r](const Work& work) { return run(r, work); }});
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
