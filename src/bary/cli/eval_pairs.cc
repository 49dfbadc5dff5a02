// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/eval_pairs.h"

#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/cli/train_checks.h"
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
  BARY_CHECK(
      draws_letters(t.task) || (r.min_length == 0 && r.max_length == 0),
      "eval: --min_length and --max_length are for copy, reverse and sort, and the pairs are of {}; leave them out",
      r.data.empty() ? t.task : r.data);
  if (r.min_length) t.min_length = r.min_length;
  if (r.max_length) t.max_length = r.max_length;
  if (r.min_length && !r.max_length) t.max_length = std::max(t.max_length, r.min_length);
  BARY_CHECK(!t.task.empty(), "eval: the run left no record of its task; give --task or --data");
  BARY_CHECK(t.task != "restoration" || t.dataset != "-",
             "eval: the run learned lines of its standard input, which are gone; give pairs of your own with --data");
  return t;
}

// A list that is short enough as a whole; of longer ones, and of pairs without end, draws
std::vector<TextPair> pairs_to_judge(const PairTask& task, const TrainConfig& t, const PairEvalRequest& r) {
  BARY_CHECK(!r.data.empty() || task.facts().held_out > 0,
             "eval: the run held out no pairs (val_fraction 0); name a file of others with --data");
  const PairSplit split = r.data.empty() ? PairSplit::held_out : PairSplit::training;
  const int64_t there = task.is_list() ? task.count(split) : 0;
  if (there > 0 && (r.count == 0 || there <= r.count)) return listed_pairs(task, split);
  return drawn_pairs(task, t.eval_seed, split, r.count ? r.count : 1000);
}

// "12 held-out pairs of copy", "1 pair of pairs.tsv"
std::string told(size_t pairs, const TrainConfig& t, const PairEvalRequest& r) {
  const bool held_out = r.data.empty();
  return fmt::format("{} {}{} of {}", grouped(static_cast<int64_t>(pairs)), held_out ? "held-out " : "",
                     pairs == 1 ? "pair" : "pairs", held_out ? t.task : r.data);
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

// Chosen pairs as a task, drawn in their order
class GivenPairs : public PairTask {
 public:
  GivenPairs(const PairFacts& facts, std::vector<TextPair> pairs) : PairTask(facts), pairs_(std::move(pairs)) {}
  TextPair draw(uint64_t, PairSplit, uint64_t index) const override { return pairs_[index % pairs_.size()]; }

 private:
  std::vector<TextPair> pairs_;
};

// One stack has no beam here: what it would write is judged token by token (train/evaluate.h says why that is the
// same).
int eval_line(const std::string& folder, TrainConfig t, const PairEvalRequest& r, bool json, Io& io) {
  LoadedModel m = load_model(folder);
  BARY_CHECK(m.tokenizer.has_value(), "eval: {} has no tokenizer.json", m.folder.string());
  t.prefix = reads_prefix(m);
  const auto task = pair_task_of(t);
  const std::vector<TextPair> pairs = pairs_to_judge(*task, t, r);
  const PairData data(std::make_shared<GivenPairs>(task->facts(), pairs), {}, {m.tokenizer, {}});
  for (const TextPair& p : pairs) {
    const CodedPair pair = data.coded(p);
    m.model->ensure_positions(static_cast<int64_t>(pair.source.size() + pair.target.size()) + 1);
  }
  const PairLineObjective objective(t, *m.model, data);
  const Evaluation e = objective.evaluate(Part::held_out, std::ssize(pairs), t.eval_seed);
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
  io.print(fmt::format("{} on {}: {} of the targets whole, {} of their tokens right, loss {:.4f} nats a token\n",
                       m.folder.string(), told(pairs.size(), t, r), percent_text(e.exact_match()),
                       percent_text(e.accuracy()), e.loss()));
  return kExitOk;
}

int eval_sides(const std::string& folder, const TrainConfig& t, const PairEvalRequest& r, bool json, Io& io) {
  LoadedSeq2Seq m = load_seq2seq(folder);
  const auto task = pair_task_of(t);
  const std::vector<TextPair> pairs = pairs_to_judge(*task, t, r);
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
  print(rows, fmt::format("{} on {}", m.folder.string(), told(pairs.size(), t, r)), io);
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
  o.add("count", &count, "pairs to judge (0: all of a list); of --data all, unless a number is given",
        {.min = 0, .max = 1 << 24});
  o.add("beam", &beam.beam, "beginnings that are followed (1: greedy)", {.min = 1, .max = 65536});
  o.add("length_penalty", &beam.length_penalty, "0: by probability, 1: by its mean over the tokens",
        {.min = 0, .max = 10});
}

int eval_pairs(const std::string& folder, const CheckpointKind& kind, const PairEvalRequest& r, bool json, Io& io) {
  const TrainConfig t = settings_of(find_checkpoint(folder, true), r);
  return kind.one_stack() ? eval_line(folder, t, r, json, io) : eval_sides(folder, t, r, json, io);
}

}  // namespace bary
