// SPDX-License-Identifier: Apache-2.0
// bary eval: how well a model predicts a text.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/cli/eval_pairs.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/train_request.h"
#include "bary/report/format.h"
#include "bary/train/checkpoint.h"
#include "bary/train/data.h"
#include "bary/train/evaluate.h"
#include "bary/train/masking.h"
#include "bary/train/probe.h"

namespace bary {
namespace {

struct EvalRequest {
  std::string dataset, corpus, split = "val";
  double val_fraction = 0.1;
  int64_t threads = 0;
  Reading reading;
  bool partial = false, json = false;
  PairEvalRequest pairs;
  Options options() {
    Options o("eval");
    o.add("dataset", &dataset, "text to predict (as in train; default: what the model was trained on)");
    o.add("corpus", &corpus, "where a named text lies");
    o.add("split", &split, "val, train (as much of its start as val has) or all", {.choices = {"val", "train", "all"}});
    o.add("val_fraction", &val_fraction, "share held out, at the end; unless given, the run's own, else the default",
          {.min = 0, .max = 1, .below_max = true});
    o.add("block_size", &reading.block_size, "tokens in a window (0: as trained)", {.min = 0, .max = 1 << 30});
    reading.describe(o);
    o.add("partial", &partial, "count the last, shorter window too");
    pairs.describe(o);
    o.group("Running");
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("json", &json, "print the result as JSON");
    return o;
  }
};

// What the run's record says about its data, unless the command line says otherwise
void defaults_from_record(EvalRequest& r, const Options& o, const std::filesystem::path& folder) {
  const std::optional<TrainConfig> t = recorded_training(folder);
  if (!t) return;
  if (!o.is_set("dataset")) r.dataset = t->dataset;
  if (!o.is_set("corpus")) r.corpus = t->corpus;
  if (!o.is_set("val_fraction")) r.val_fraction = t->val_fraction;
}

// An encoder tells what is missing, not what comes next.
int eval_masked(const LoadedModel& m, TokenSpan text, int32_t mask, const EvalRequest& r, Io& io) {
  const Evaluation e = evaluate_masked(*m.model, text, mask, 0, 1);
  if (r.json) {
    io.print(dump_json({{"model", m.folder.string()},
                        {"dataset", r.dataset},
                        {"split", r.split},
                        {"masked_tokens", e.tokens},
                        {"accuracy", e.accuracy()},
                        {"loss", e.loss()}}) +
             "\n");
    return kExitOk;
  }
  io.print(fmt::format("{} on {} ({}): {} of {} masked tokens right, loss {:.4f} nats a token\n", m.folder.string(),
                       r.dataset, r.split, percent_text(e.accuracy()), grouped(e.tokens), e.loss()));
  return kExitOk;
}

// What means nothing for this model is refused, not passed over.
void check_options(const EvalRequest& r, const Options& o, const std::string& folder, const CheckpointKind& kind) {
  if (!kind.of_pairs) {
    if (kind.config.arch == Arch::encoder)
      o.refuse({"partial"}, fmt::format("counts windows, and {} (arch=encoder) is asked for masked tokens", folder));
    if (r.split == "all") o.refuse({"val_fraction"}, "parts a text, and --split all takes all of it");
    return o.refuse({"task", "data", "data_target", "min_length", "max_length", "count", "beam", "length_penalty"},
                    fmt::format("is for a model of pairs, and {} learned a text", folder));
  }
  o.refuse({"dataset", "corpus", "split", "val_fraction", "block_size", "rope_scaling", "rope_factor", "partial"},
           fmt::format("is for a model of a text, and {} learned pairs (--task or --data says which)", folder));
  if (kind.one_stack())
    o.refuse({"beam", "length_penalty"},
             fmt::format("searches, and {} is one stack, which is judged token by token", folder));
}

void check_token_files(const EvalRequest& r, const Options& o) {
  if (!is_token_folder(r.dataset)) return;
  o.refuse({"val_fraction", "corpus"},
           fmt::format("is of a text, and {} holds token files, which are coded and parted already", r.dataset));
  std::error_code ignored;
  BARY_CHECK(r.split != "all" || !std::filesystem::exists(std::filesystem::path(r.dataset) / "val.bin", ignored),
             "eval: {} holds train.bin and val.bin, and --split all would be of one of them; ask for train or val",
             r.dataset);
}

int eval_text(LoadedModel& m, const EvalRequest& r, Io& io) {
  DataOptions d;
  d.dataset = r.dataset, d.corpus = r.corpus, d.vocab_size = m.model->config().vocab_size;
  d.val_fraction = r.val_fraction, d.mask = m.model->config().arch == Arch::encoder;
  d.notice = [&](const std::string& line) { io.note(line); };
  if (r.split == "all") d.val_fraction = 0;
  TrainData data = TrainData::load(d, m.tokenizer);
  TokenSpan text = r.split == "val" ? data.val
                   : r.split == "train" && !data.val.empty()
                       ? data.train.slice(0, std::min(data.val.size(), data.train.size()))
                       : data.train;
  BARY_CHECK(text.size() > m.model->config().block_size,
             "eval: the text to predict has {} tokens, a window of {} needs {}; give a longer "
             "text or another --split",
             text.size(), m.model->config().block_size, m.model->config().block_size + 1);
  if (data.mask_token) return eval_masked(m, text, *data.mask_token, r, io);
  if (m.model->config().causal()) {
    CausalityReport probe = probe_causality(*m.model, 1);
    BARY_CHECK(probe.causal, ErrorKind::numeric,
               "eval: the model sees the future (token {} moved output {}); its loss means nothing", probe.changed,
               probe.moved);
  } else {
    io.note("note: this model sees the whole window (mask=full), so its loss is not a prediction");
  }
  EvaluationProgress progress;
  if (io.err_is_terminal)
    progress = [&](int64_t done, int64_t total) {
      io.draw(fmt::format("\r{}\x1b[K", done == total ? "" : fmt::format("{}/{} windows", done, total)));
    };
  Evaluation e = evaluate_all(*m.model, text, data.bytes_of_token, !r.partial, progress);
  if (r.json) {
    io.print(dump_json({{"model", m.folder.string()},
                        {"dataset", r.dataset},
                        {"split", r.split},
                        {"tokens", e.tokens},
                        {"loss", e.loss()},
                        {"perplexity", e.perplexity()},
                        {"bits_per_byte", e.bytes ? Json(e.bits_per_byte()) : Json()}}) +
             "\n");
    return kExitOk;
  }
  io.print(fmt::format("{} on {} ({}): perplexity {:.2f}, loss {:.4f} nats a token{} over {} tokens\n",
                       m.folder.string(), r.dataset, r.split, e.perplexity(), e.loss(),
                       e.bytes ? fmt::format(", {:.3f} bits per byte", e.bits_per_byte()) : "", grouped(e.tokens)));
  return kExitOk;
}

int run_eval(std::span<const std::string> args, Io& io) {
  EvalRequest r;
  Options o = r.options();
  auto rest = o.parse_args(args);
  BARY_CHECK(rest.size() == 1, "eval: one model is evaluated, {} came; name the folder of a run or checkpoint",
             rest.size());
  set_threads(static_cast<int>(r.threads));
  const CheckpointKind kind = kind_of(rest[0]);
  check_options(r, o, rest[0], kind);
  if (!r.pairs.data.empty() && !o.asked("count")) r.pairs.count = 0;  // a person's own file is judged whole
  if (kind.of_pairs) return eval_pairs(rest[0], kind, r.pairs, r.json, io);
  LoadedModel m = load_model(rest[0], r.reading);
  defaults_from_record(r, o, m.folder);
  BARY_CHECK(!r.dataset.empty(), "eval: no text to predict: the run left no record of one; give --dataset");
  BARY_CHECK(r.dataset != "-" || o.asked("dataset"),
             "eval: the run learned its standard input, which is gone; name a text with --dataset (- reads one anew)");
  check_token_files(r, o);
  return eval_text(m, r, io);
}

}  // namespace

Command eval_command() {
  return {"eval",
          "measure how well a model predicts a text",
          "RUN|CHECKPOINT [--dataset TEXT] [--key value ...]",
          {{"bary eval runs/book", "perplexity on the text held out in training"},
           {"bary eval runs/book --split train", "and on as much of the text it learned from"},
           {"bary eval runs/rotary --block_size 512 --rope_scaling yarn --rope_factor 4",
            "a model with --pos rotary, read past its window of 128"},
           {"bary eval runs/reverse --beam 4", "a model of pairs: exact match, BLEU and chrF beside the baselines"},
           {"bary eval runs/book/last --dataset other.txt --split all --json", "on another text, for a program"}},
          [] { return EvalRequest().options().help(); },
          run_eval};
}

}  // namespace bary
