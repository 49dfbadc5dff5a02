// SPDX-License-Identifier: Apache-2.0
// What attention replaced, and the three failures it is blamed for: a gradient that has to pass every step, a source
// that has to fit into one vector, and positions that have to wait for each other.
#include "bary/lab/recurrence.h"

#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/train/pair_objective.h"

namespace bary::lab {
namespace {

Recipe copy_recipe(Attend attend, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model.arch = Arch::lstm, r.model.attend = attend;
  r.model.vocab_size = r.model.source_vocab_size = 11;
  r.model.n_embd = 64;
  r.steps = plan.pick<int64_t>(2, 1200, 2000), r.batch = plan.pick<int64_t>(4, 64, 64);
  r.learning_rate = 5e-3, r.warmup = 100, r.course = ScheduleKind::cosine;
  r.adamw.grad_clip = 1;
  r.seed = seed;
  return r;
}

PairData copies(uint64_t seed, int64_t from, int64_t to, const Tokenizers& given = {}) {
  PairOptions o;
  o.seed = seed, o.min_length = static_cast<int>(from), o.max_length = static_cast<int>(to);
  return PairData(make_pair_task("copy", o), {}, given);
}

// An LSTM that copies letters through an LSTM, trained on all lengths together and judged at each
nlohmann::json copy(const Recipe& r, const Work& work) {
  const PairData data = copies(r.seed, kCopied[0], kCopied[std::size(kCopied) - 1]);
  const auto model = make_seq2seq(r.model, r.seed);
  const TrainConfig config = objective_config(r);
  nlohmann::json row;
  train_objective(r, PairObjective(config, *model, data), work, keep_losses(row, r.steps));
  std::vector<double> exact, right;
  for (int64_t n : kCopied) {
    const PairData of_length = copies(r.seed, n, n, data.tokenizers());
    const Evaluation e =
        PairObjective(config, *model, of_length).evaluate(Part::held_out, work.plan.pick<int64_t>(4, 1000, 1000), 1);
    exact.push_back(100 * e.exact_match()), right.push_back(100 * e.accuracy());
  }
  row["parameters"] = model->parameters().count();
  row["exact"] = exact, row["right"] = right;
  row["shortest"] = exact.front(), row["longest"] = exact.back(), row["falls"] = exact.front() - exact.back();
  return row;
}

Recipe text_recipe(const Network& n, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset("block");
  r.model.arch = n.arch, r.model.n_embd = n.width;
  if (r.model.recurrent()) r.model.n_head = 1;
  r.seed = seed;
  return shortened(r, plan, 400);
}

// Perplexity, and how far the gradient reaches once trained
nlohmann::json text(const Recipe& r, const Work& work) {
  auto [model, row] = train_on_text(r, work);
  const int64_t T = r.model.block_size;
  const Windows windows(held_out(work), T, "the held-out part");
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t b = 0; b < work.plan.pick<int64_t>(2, 16, 64); ++b) {
    std::vector<int32_t> ids(static_cast<size_t>(T)), next(ids.size());
    windows.window(1, Purpose::eval_batch, 0, static_cast<uint64_t>(b), ids, next);
    ids.push_back(next.back());
    sequences.push_back(ids);
  }
  add_gradient_norms(row, *model, sequences, work.plan.pick<int64_t>(16, T, T));
  return row;
}

std::vector<Unit> units(const Plan& plan) {
  std::vector<Unit> all;
  const int64_t seeds = plan.pick<int64_t>(1, 3, plan.seeds);  // of what costs next to nothing
  for (const Network& n : kNetworks)
    for (int64_t seed = 1; seed <= seeds; ++seed)
      all.push_back({fmt::format("{}/{}", start_row(n), seed), 20,
                     [n, seed](const Work& work) { return at_start(n, static_cast<uint64_t>(seed), work); }});
  for (int64_t seed = 1; seed <= plan.runs(); ++seed) {
    for (size_t i = 0; i < std::size(kBridges); ++i) {
      const Attend attend = i == 0 ? Attend::none : i == 1 ? Attend::additive : Attend::dot;
      const Recipe r = copy_recipe(attend, static_cast<uint64_t>(seed), plan);
      all.push_back({fmt::format("{}/{}", kBridges[i], seed), 4 * recipe_gflop(r, kCopied[std::size(kCopied) - 1]),
                     [r](const Work& work) { return copy(r, work); }});
    }
    for (const Network& n : kNetworks)
      if (n.trained) all.push_back(training_unit(text_row(n), text_recipe(n, static_cast<uint64_t>(seed), plan), text));
  }
  for (bool lstm : {true, false})
    all.push_back({lstm ? "time LSTM" : "time attention", 20, [lstm](const Work& work) { return times(lstm, work); }});
  return all;
}

}  // namespace

Experiment recurrence() {
  Experiment e;
  e.name = "recurrence";
  e.question = "What did attention replace, and where does it fail?";
  e.claims = recurrence_claims();
  e.units = units;
  e.judge = judge_recurrence;
  return e;
}

}  // namespace bary::lab
