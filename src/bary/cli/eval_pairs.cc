// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/eval_pairs.h"

#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/cli/train_start.h"
#include "bary/cli/translate_text.h"
#include "bary/io/run_folder.h"
#include "bary/report/format.h"
#include "bary/report/table.h"
#include "bary/text/metrics.h"
#include "bary/text/pair_baselines.h"
#include "bary/train/pair_objective.h"

namespace bary {
namespace {

// The run's own settings, with what was asked for instead
TrainConfig settings_of(const std::filesystem::path& checkpoint, const PairEvalRequest& r) {
  TrainConfig t = recorded_training(checkpoint).value_or(TrainConfig());
  if (!r.task.empty()) t.task = r.task;
  BARY_CHECK(r.data.empty() || r.task.empty() || r.task == "pairs",
             "eval: --task {} makes its own pairs and --data names a file; give one of them", r.task);
  BARY_CHECK(!r.data.empty() || r.data_target.empty(), "eval: --data_target has the targets of --data; give both");
  // of a file to be judged on nothing is set apart: all of it is what a task has to learn from
  if (!r.data.empty()) t.task = "pairs", t.data = r.data, t.data_target = r.data_target, t.val_fraction = 0;
  if (r.min_length) t.min_length = r.min_length;
  if (r.max_length) t.max_length = r.max_length;
  if (r.min_length && !r.max_length) t.max_length = std::max(t.max_length, r.min_length);
  BARY_CHECK(!t.task.empty(), "eval: the run left no record of its task; give --task or --data");
  return t;
}

struct Row {
  std::string name;
  TextScores scores;
};

std::vector<Row> scored(const PairTask& task, const std::vector<TextPair>& pairs, std::vector<std::string> answers,
                        const std::string& name) {
  const std::vector<std::string> wanted = targets_of(pairs);
  std::vector<Row> rows{{name, score_texts(answers, wanted)},
                        {"the source as it is", score_texts(copied_sources(pairs), wanted)}};
  if (task.name() == "restoration") {
    const WordRestoration words(listed_pairs(task, PairSplit::training));
    rows.push_back({"each word's most frequent form", score_texts(words.restore(pairs), wanted)});
  }
  return rows;
}

nlohmann::json to_json(const Row& row) {
  return {{"name", row.name},
          {"exact_match", row.scores.exact.value()},
          {"word_accuracy", row.scores.words.value()},
          {"character_accuracy", row.scores.characters.value()},
          {"bleu", row.scores.bleu.score},
          {"chrf", row.scores.chrf.score}};
}

void print(const std::vector<Row>& rows, const std::string& title, Io& io) {
  Table table({{"", Align::left},
               {"exact", Align::right},
               {"words", Align::right},
               {"characters", Align::right},
               {"BLEU", Align::right},
               {"chrF", Align::right}});
  for (const Row& r : rows)
    table.row({r.name, percent_text(r.scores.exact.value()), percent_text(r.scores.words.value()),
               percent_text(r.scores.characters.value()), fmt::format("{:.2f}", r.scores.bleu.score),
               fmt::format("{:.2f}", r.scores.chrf.score)});
  io.print(title + "\n\n" + table.text());
}

// One stack has no beam here: what it would write is judged token by token (train/evaluate.h says why that is the
// same).
int eval_line(const std::string& folder, TrainConfig t, int64_t count, bool json, Io& io) {
  LoadedModel m = load_model(folder);
  BARY_CHECK(m.tokenizer.has_value(), "eval: {} has no tokenizer.json", m.folder.string());
  t.prefix = reads_prefix(m);
  const PairData data(pair_task_of(t), {}, {m.tokenizer, {}});
  for (const CodedPair& pair : data.fixed(PairSplit::held_out, count, t.eval_seed))
    m.model->ensure_positions(static_cast<int64_t>(pair.source.size() + pair.target.size()) + 1);
  const Evaluation e = PairLineObjective(t, *m.model, data).evaluate(Part::held_out, count, t.eval_seed);
  if (json) {
    io.print(dump_json({{"model", m.folder.string()},
                        {"task", t.task},
                        {"pairs", e.sequences},
                        {"exact_match", e.exact_match()},
                        {"token_accuracy", e.accuracy()},
                        {"loss", e.loss()}}) +
             "\n");
    return kExitOk;
  }
  io.print(fmt::format("{} on {}: {} of {} targets whole, {} of their tokens right, loss {:.4f} nats a token\n",
                       m.folder.string(), t.task, percent_text(e.exact_match()), grouped(e.sequences),
                       percent_text(e.accuracy()), e.loss()));
  return kExitOk;
}

}  // namespace

void PairEvalRequest::describe(Options& o) {
  o.group("Models of pairs");
  o.add("task", &task, "pairs to answer (as in train; default: the run's)");
  o.add("data", &data, "or a file with SOURCE, a tab and TARGET a line", {.value_name = "FILE"});
  o.add("data_target", &data_target, "the targets in a file of their own", {.value_name = "FILE"});
  o.add("min_length", &min_length, "shortest source of copy, reverse, sort (0: the run's)", {.min = 0, .max = 100000});
  o.add("max_length", &max_length, "longest", {.min = 0, .max = 100000});
  o.add("count", &count, "held-out pairs (0: all of a list)", {.min = 0, .max = 1 << 24});
  o.add("beam", &beam.beam, "beginnings that are followed (1: greedy)", {.min = 1, .max = 65536});
  o.add("length_penalty", &beam.length_penalty, "0: by probability, 1: by its mean over the tokens",
        {.min = 0, .max = 10});
}

bool is_of_pairs(const std::string& folder) {
  const LoadedCheckpoint c = load_checkpoint(find_checkpoint(folder, true), {.optimizer = false});
  return c.state.contains("task");
}

int eval_pairs(const std::string& folder, const PairEvalRequest& r, bool json, Io& io) {
  const std::filesystem::path place = find_checkpoint(folder, true);
  const TrainConfig t = settings_of(place, r);
  if (!checkpoint_config(folder).has_source()) return eval_line(folder, t, r.count, json, io);
  LoadedSeq2Seq m = load_seq2seq(folder);
  const auto task = pair_task_of(t);
  // A list that is short enough as a whole; of longer ones, and of pairs without end, draws
  const PairSplit split = r.data.empty() ? PairSplit::held_out : PairSplit::training;
  const int64_t there = task->is_list() ? task->count(split) : 0;
  const bool listed = there > 0 && (r.count == 0 || there <= r.count);
  const std::vector<TextPair> pairs =
      listed ? listed_pairs(*task, split) : drawn_pairs(*task, t.eval_seed, split, r.count ? r.count : 1000);
  std::vector<std::string> answers;
  for (const auto& best : translate(Sides{*m.model, m.source, m.target}, copied_sources(pairs), r.beam))
    answers.push_back(m.target.decode(best[0].ids));
  const std::string name = r.beam.beam == 1 ? "the model, greedy" : fmt::format("the model, beam {}", r.beam.beam);
  const std::vector<Row> rows = scored(*task, pairs, std::move(answers), name);
  if (json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Row& row : rows) all.push_back(to_json(row));
    io.print(dump_json({{"model", m.folder.string()}, {"task", t.task}, {"pairs", pairs.size()}, {"scores", all}}) +
             "\n");
    return kExitOk;
  }
  print(rows,
        fmt::format("{} on {} held-out pairs of {}", m.folder.string(), grouped(static_cast<int64_t>(pairs.size())),
                    t.task),
        io);
  return kExitOk;
}

}  // namespace bary
