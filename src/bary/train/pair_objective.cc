// SPDX-License-Identifier: Apache-2.0
#include "bary/train/pair_objective.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/model/count.h"
#include "bary/train/chosen.h"

namespace bary {
namespace {

using Some = std::span<const CodedPair>;

std::vector<CodedPair> pairs_of(const PairData& data, const TrainConfig& c, int64_t it) {
  return data.update(c.seed, it, {c.sequences(), c.batch_tokens});
}

int64_t longest(Some pairs) {
  int64_t most = 1;
  for (const CodedPair& p : pairs) most = std::max(most, p.longest());
  return most;
}

// judge(pairs) for the fixed pairs of a part, some at a time, added in their order
template <class Judge>
Evaluation evaluate_pairs(const PairData& data, Part part, int64_t count, uint64_t seed, const Judge& judge) {
  const auto pairs = data.fixed(part == Part::train ? PairSplit::training : PairSplit::held_out, count, seed);
  const int64_t n = static_cast<int64_t>(pairs.size()), together = 16, parts = (n + together - 1) / together;
  std::vector<Evaluation> found(static_cast<size_t>(parts));
  parallel_tasks(parts, [&](int64_t i, int) {
    const auto first = static_cast<size_t>(i * together);
    found[static_cast<size_t>(i)] = judge(Some(pairs).subspan(first, std::min<size_t>(together, pairs.size() - first)));
  });
  Evaluation total;
  for (const Evaluation& e : found) add(e, total);
  return total;
}

// Tokens of a pair, both sides and the end
int64_t typical_tokens(const PairData& data) {
  const std::vector<CodedPair> some = data.fixed(PairSplit::training, 64, 1);
  size_t sum = 0;
  for (const CodedPair& p : some) sum += p.source.size() + p.target.size() + 1;
  return static_cast<int64_t>(sum / std::max<size_t>(some.size(), 1));
}

double typical_flops(const ModelConfig& model, const TrainConfig& c, int64_t rows) {
  const int64_t pairs = c.batch_tokens ? c.batch_tokens / std::max<int64_t>(rows, 1) : c.sequences();
  return count_flops(model, rows).training * static_cast<double>(pairs);
}

}  // namespace

GradientSum::Result PairObjective::gradient(int64_t it, const Pass& pass, GradientSum& into) const {
  const std::vector<CodedPair> pairs = pairs_of(data_, config_, it);
  const LossOptions options(1, static_cast<float>(config_.label_smoothing));
  return into.compute(
      static_cast<int64_t>(pairs.size()), longest(pairs),
      [&](int64_t first, int64_t count, const Pass& mine) {
        return model_.loss(
            batch_of(Some(pairs).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), data_.tokens()), mine,
            options);
      },
      pass);
}

Evaluation PairObjective::evaluate(Part part, int64_t count, uint64_t seed) const {
  return evaluate_pairs(data_, part, count, seed, [&](Some pairs) {
    const PairBatch batch = batch_of(pairs, data_.tokens());
    return judged(model_.logits(batch), batch.targets);
  });
}

double PairObjective::flops_per_update() const {
  return typical_flops(model_.config(), config_, (typical_tokens(data_) + 1) / 2);
}

void PairObjective::look_again(int64_t it) const {
  model_.logits(batch_of(pairs_of(data_, config_, it), data_.tokens()));
}

namespace {

// Which pairs these were: a run that goes on compares it.
nlohmann::json with_task(nlohmann::json state, const PairData& data) {
  state["task"] = data.task().name(), state["pairs_sha256"] = data.task().facts().sha256;
  return state;
}

}  // namespace

std::string PairObjective::save(const std::filesystem::path& folder, AdamW* optimizer,
                                const nlohmann::json& state) const {
  return save_model(folder, model_, data_.tokenizers(), optimizer, with_task(state, data_));
}

namespace {

Pass shown(const LineBatch& batch, const TrainConfig& c, Pass pass) {
  if (c.prefix) pass.prefix = batch.sources;
  return pass;
}

}  // namespace

GradientSum::Result PairLineObjective::gradient(int64_t it, const Pass& pass, GradientSum& into) const {
  const std::vector<CodedPair> pairs = pairs_of(data_, config_, it);
  const LossOptions options(1, static_cast<float>(config_.label_smoothing));
  return into.compute(
      static_cast<int64_t>(pairs.size()), 2 * longest(pairs),
      [&](int64_t first, int64_t count, const Pass& mine) {
        const LineBatch batch =
            lines_of(Some(pairs).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), data_.tokens());
        return model_.loss(batch.inputs.ids, batch.targets, count, shown(batch, config_, mine), options);
      },
      pass);
}

Evaluation PairLineObjective::evaluate(Part part, int64_t count, uint64_t seed) const {
  return evaluate_pairs(data_, part, count, seed, [&](Some pairs) {
    const LineBatch batch = lines_of(pairs, data_.tokens());
    return judged(model_.logits(batch.inputs.ids, batch.inputs.B(), shown(batch, config_, {})), batch.targets);
  });
}

double PairLineObjective::flops_per_update() const {
  return typical_flops(model_.config(), config_, typical_tokens(data_));
}

void PairLineObjective::look_again(int64_t it) const {
  const LineBatch batch = lines_of(pairs_of(data_, config_, it), data_.tokens());
  model_.hidden(batch.inputs.ids, batch.inputs.B(), shown(batch, config_, {}));
}

std::string PairLineObjective::save(const std::filesystem::path& folder, AdamW* optimizer,
                                    const nlohmann::json& state) const {
  nlohmann::json mine = with_task(state, data_);
  mine["prefix"] = config_.prefix;  // how its lines are to be read
  return save_model(folder, model_, data_.tokenizers(), optimizer, mine);
}

}  // namespace bary
