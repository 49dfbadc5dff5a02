// SPDX-License-Identifier: Apache-2.0
// The arrangement of 2017 on three tasks that show what cross-attention does: copy letters, reverse them, sort them.
// The same pairs then go through one stack, as a line of source and target, causal or with a mask that lets all of the
// source be seen.
#include "bary/lab/encoder_decoder.h"

#include <algorithm>

#include "bary/inspect/cross.h"
#include "bary/lab/list.h"
#include "bary/train/pair_objective.h"

namespace bary::lab {
namespace {

Recipe recipe(const Arrangement& a, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = a.model();
  r.steps = plan.pick<int64_t>(2, 800, 2000), r.batch = plan.pick<int64_t>(4, 32, 64);
  r.learning_rate = 3e-3, r.warmup = r.steps / 10, r.course = ScheduleKind::cosine;
  r.adamw.grad_clip = 1;
  r.seed = seed;
  return r;
}

// The seed also draws which sequences are held out; lengths differ, the rule that parts them does not.
PairData letters(const std::string& task, uint64_t seed, int64_t from, int64_t to, const Tokenizers& given = {}) {
  PairOptions o;
  o.seed = seed, o.min_length = static_cast<int>(from), o.max_length = static_cast<int>(to);
  return PairData(make_pair_task(task, o), {}, given);
}

int64_t straight(int64_t t, int64_t) { return t; }
int64_t backwards(int64_t t, int64_t n) { return n - 1 - t; }

// Where the blocks of the target read, before each letter they write: the share of the reading that is on the one
// letter the task asks for, of each block (mean over heads) and head; and the map of one sequence
void look(const Seq2Seq& model, const std::string& task, const PairData& data, const Work& work, nlohmann::json& row) {
  const auto column = task == "reverse" ? backwards : straight;
  const int64_t blocks = model.config().n_layer, H = model.config().n_head;
  const auto pairs = data.fixed(PairSplit::held_out, work.plan.pick<int64_t>(4, 200, 200), 1);
  std::vector<double> heads(static_cast<size_t>(blocks * H), 0), means(static_cast<size_t>(blocks), 0);
  for (const CodedPair& pair : pairs) {
    const auto maps = cross_patterns(model, batch_of({&pair, 1}, data.tokens()));
    for (size_t i = 0; i < heads.size(); ++i) {
      const auto block = i / static_cast<size_t>(H);
      const double mass = mass_on(maps[block], static_cast<int64_t>(i) % H, std::ssize(pair.target), column) /
                          static_cast<double>(pairs.size());
      heads[i] += mass, means[block] += mass / static_cast<double>(H);
    }
  }
  row["heads"] = heads, row["blocks"] = means;
  row["best block"] = greatest(means);
  row["best head"] = greatest(heads);
  const PairData twelve = letters(task, 1, kDrawn, kDrawn, data.tokenizers());
  const TextPair shown = twelve.task().draw(1, PairSplit::held_out, 0);
  const CodedPair coded = twelve.coded(shown);
  row["source"] = shown.source, row["target"] = shown.target;
  for (const Tensor& pattern : cross_patterns(model, batch_of({&coded, 1}, data.tokens()))) {
    std::vector<double> map;
    for (float weight : mean_over_heads(pattern).to_vector()) map.push_back(static_cast<double>(weight));
    row["maps"].push_back(map);
  }
}

// What is right in the row's words: whole targets and tokens, of as many letters as were trained on and of more
void score(const Objective& trained, const Objective& longer, const Work& work, nlohmann::json& row) {
  const int64_t count = work.plan.pick<int64_t>(8, 1000, 1000);
  const Evaluation known = trained.evaluate(Part::held_out, count, 1), more = longer.evaluate(Part::held_out, count, 1);
  row["exact"] = known.exact_match(), row["right"] = known.accuracy();
  row["longer exact"] = more.exact_match(), row["longer right"] = more.accuracy();
  row["parameters"] = trained.model().parameters().count();
}

nlohmann::json run(const Arrangement& a, const std::string& task, const Recipe& r, const Work& work) {
  const PairData data = letters(task, r.seed, kShortest, kLongest);
  const PairData longer = letters(task, r.seed, kLongest + 1, kLonger, data.tokenizers());
  TrainConfig config = objective_config(r);
  config.prefix = a.prefix, config.label_smoothing = 0.1;
  nlohmann::json row;
  if (a.line) {
    LanguageModel model(r.model, r.seed);
    const PairLineObjective objective(config, model, data);
    train_objective(r, objective, work, keep_losses(row, r.steps));
    score(objective, PairLineObjective(config, model, longer), work, row);
  } else {
    const auto model = make_seq2seq(r.model, r.seed);
    const PairObjective objective(config, *model, data);
    train_objective(r, objective, work, keep_losses(row, r.steps));
    score(objective, PairObjective(config, *model, longer), work, row);
    look(*model, task, data, work, row);
  }
  return row;
}

}  // namespace

// One stack has as many blocks as the two have together; its MLPs are wider by a quarter, which comes to about the
// parameters that cross-attention takes.
ModelConfig Arrangement::model() const {
  ModelConfig c = preset("copy");
  c.dropout = 0.1;
  if (line) c.arch = Arch::decoder, c.source_vocab_size = 0, c.n_layer *= 2, c.mlp_ratio = 5;
  return c;
}

Experiment encoder_decoder() {
  Experiment e;
  e.name = "encoder-decoder";
  e.question = "What does cross-attention read, and could one stack do the same?";
  e.claims = encoder_decoder_claims();
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
      for (const std::string task : kPairTasks) {
        for (const Arrangement& a : kArrangements) {
          const Recipe r = recipe(a, static_cast<uint64_t>(seed), plan);
          const std::string key = fmt::format("{}/{}", pair_row(a, task), seed);
          const int64_t rows = a.line ? 2 * kLongest : kLongest;
          units.push_back(
              {key, recipe_gflop(r, rows), [a, task, r](const Work& work) { return run(a, task, r, work); }});
        }
      }
    }
    return units;
  };
  e.judge = judge_encoder_decoder;
  return e;
}

}  // namespace bary::lab
