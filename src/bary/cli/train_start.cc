// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/train_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "bary/model/count.h"
#include "bary/report/format.h"
#include "bary/text/corpus.h"
#include "bary/train/pair_objective.h"
#include "bary/train/text_objective.h"

namespace bary {
namespace {

std::filesystem::path beginning(const TrainRequest& r) {
  return r.train.init_from == "resume" ? find_checkpoint(r.train.out_dir, false)
                                       : std::filesystem::path(r.train.init_from);
}

std::string text_in(const nlohmann::json& state, const char* key) {
  return state.contains(key) && state[key].is_string() ? state[key].get<std::string>() : "";
}

// A run that learns on from a text that has changed would hold out what it has learned.
void check_same_text(const nlohmann::json& state, const TrainData& data, const std::string& out_dir) {
  const std::string then = text_in(state, "text_sha256"), now = data.sha256;
  BARY_CHECK(then.empty() || now.empty() || then == now,
             "train: the text of the run in {} has changed (SHA-256 {}..., {}... now); give it back, or start another "
             "run from its weights with --init_from {}/last",
             out_dir, then.substr(0, 12), now.substr(0, 12), out_dir);
}

// A checkpoint's shape with this run's dropout, which no parameter depends on
void take_shape(ModelConfig& mine, const ModelConfig& theirs) {
  const double dropout = mine.dropout;
  mine = theirs;
  mine.dropout = dropout;
}

TrainStart prepare_text(TrainRequest& r, Io& io) {
  std::optional<LoadedModel> from;
  const bool resume = r.train.init_from == "resume";
  if (r.train.init_from != "scratch") from = load_model(beginning(r));
  const std::optional<Tokenizer> given = from ? from->tokenizer : std::nullopt;
  DataOptions d;
  d.dataset = r.train.dataset, d.corpus = r.train.corpus, d.tokenizer = r.train.tokenizer, d.ties = r.train.ties;
  d.vocab_size = from && !given ? from->model->config().vocab_size : r.model.vocab_size;
  d.val_fraction = r.train.val_fraction;
  d.mask = (from ? from->model->config().arch : r.model.arch) == Arch::encoder;
  d.notice = [&](const std::string& line) { io.note(line); };
  TrainStart s;
  s.text = std::make_unique<TrainData>(TrainData::load(d, given));
  if (resume) check_same_text(from->state, *s.text, r.train.out_dir);
  if (given && !resume) r.train.tokenizer = (from->folder / "tokenizer.json").string();
  if (from) {
    take_shape(r.model, from->model->config());
  } else {
    r.model.vocab_size = s.text->vocab_size;
  }
  check_window_fits({s.text->train, s.text->val}, r.model.block_size);
  s.language = std::make_unique<LanguageModel>(r.model, r.train.seed);
  if (from && !resume) copy_parameters(from->model->parameters(), s.language->parameters());
  s.objective = std::make_unique<TextObjective>(r.train, *s.language, *s.text);
  return s;
}

// The last state a run of other pairs left is not gone on from.
void check_same_pairs(const nlohmann::json& state, const PairTask& task, const std::string& out_dir) {
  const std::string then = text_in(state, "pairs_sha256"), now = task.facts().sha256;
  BARY_CHECK(then == now,
             "train: the run in {} learned other pairs ({}) than --task {} gives now; keep its task, data and lengths, "
             "or start another run from its weights with --init_from {}/last",
             out_dir, text_in(state, "task"), task.name(), out_dir);
}

TrainStart prepare_pairs(TrainRequest& r, Io&) {
  BARY_CHECK(r.model.arch != Arch::encoder,
             "train: an encoder writes nothing, and --task asks for targets; choose --arch encoder-decoder, decoder, "
             "rnn, lstm or gru");
  BARY_CHECK(
      r.model.mask != Mask::full || r.model.arch == Arch::encoder_decoder || r.model.recurrent(),
      "train: mask=full would show every target to itself; leave it causal (and --prefix true shows the source)");
  const bool scratch = r.train.init_from == "scratch", resume = r.train.init_from == "resume";
  const bool one_stack = (scratch ? r.model : checkpoint_config(beginning(r))).arch == Arch::decoder;
  std::optional<LoadedModel> line;
  std::optional<LoadedSeq2Seq> both;
  Tokenizers given;
  auto task = pair_task_of(r.train);
  if (!scratch) {
    if (one_stack) {
      line = load_model(beginning(r));
      given.text = line->tokenizer;
    } else {
      both = load_seq2seq(beginning(r));
      given.text = both->target;
      if (both->source.to_json() != both->target.to_json()) given.source = both->source;
    }
    if (given.text && !resume) r.train.tokenizer = ((line ? line->folder : both->folder) / "tokenizer.json").string();
    if (resume) check_same_pairs(line ? line->state : both->state, *task, r.train.out_dir);
    take_shape(r.model, line ? line->model->config() : both->model->config());
  }
  TrainStart s;
  s.pairs = std::make_unique<PairData>(task, PairDataOptions{r.train.tokenizer, r.train.source_tokenizer}, given);
  // Tokens of a character: one, or the bytes it may have where the tokenizer is of another kind
  auto characters = [](const Tokenizer& t) { return t.kind() == TokenizerKind::chars; };
  const int64_t each = characters(s.pairs->source()) && characters(s.pairs->target()) ? 1 : 4;
  const int64_t source = task->facts().longest_source * each, target = task->facts().longest_target * each;
  const int64_t longest = std::max(source, target) + 1;  // the end included
  BARY_CHECK(r.train.batch_tokens == 0 || each > 1 || r.train.batch_tokens >= longest,
             "train: batch_tokens is {} and the longest pair has {} tokens on its longer side; give at least as many",
             r.train.batch_tokens, longest);
  if (scratch) {
    r.model.vocab_size = s.pairs->target().vocab_size();
    r.model.source_vocab_size = one_stack ? 0 : s.pairs->source().vocab_size();
    r.model.block_size = one_stack ? source + target + 2 : std::max(source, target) + 1;
    if (r.model.context && r.model.context < r.model.block_size) r.model.context = 0;
  }
  if (one_stack) {
    s.language = std::make_unique<LanguageModel>(r.model, r.train.seed);
    if (line && !resume) copy_parameters(line->model->parameters(), s.language->parameters());
    s.language->ensure_positions(source + target + 2);
    s.objective = std::make_unique<PairLineObjective>(r.train, *s.language, *s.pairs);
  } else {
    s.pair_model = make_seq2seq(r.model, r.train.seed);
    if (both && !resume) copy_parameters(both->model->parameters(), s.pair_model->parameters());
    s.pair_model->ensure_positions(source + 1, target + 1);
    s.objective = std::make_unique<PairObjective>(r.train, *s.pair_model, *s.pairs);
  }
  return s;
}

}  // namespace

std::shared_ptr<const PairTask> pair_task_of(const TrainConfig& c) {
  PairOptions o;
  o.held_out = c.val_fraction;
  o.symbols = static_cast<int>(c.symbols);
  o.min_length = static_cast<int>(c.min_length), o.max_length = static_cast<int>(c.max_length);
  o.file = c.data, o.target_file = c.data_target;
  if (c.task == "restoration") {
    CorpusOptions options;
    options.corpus_path = c.corpus;
    for (const std::string& document : load_corpus(c.dataset, options).documents)
      o.text += document.empty() || document.back() == '\n' ? document : document + "\n";
  }
  return make_pair_task(c.task, o);
}

TrainStart prepare_training(TrainRequest& r, Io& io) {
  if (!r.train.task.empty()) return prepare_pairs(r, io);
  BARY_CHECK(r.model.arch != Arch::encoder_decoder,
             "train: an encoder-decoder learns pairs of texts; name a --task (copy, reverse, ...) or --task pairs "
             "--data FILE");
  return prepare_text(r, io);
}

std::string data_line(const TrainStart& s) {
  const ModelConfig& c = s.model().config();
  if (s.pairs) {
    const PairFacts& f = s.pairs->task().facts();
    const bool list = s.pairs->task().is_list();
    return fmt::format("{}: {} to learn from, {} held out, sources of up to {} characters, targets {}; vocabulary {}",
                       f.name, list ? grouped(s.pairs->task().count(PairSplit::training)) : "pairs without end",
                       list ? grouped(s.pairs->task().count(PairSplit::held_out)) : "others", f.longest_source,
                       f.longest_target, grouped(c.vocab_size));
  }
  return fmt::format("{} ({}), {} tokens to learn from, {} held out, vocabulary {}", s.text->name,
                     s.text->bytes ? bytes_text(s.text->bytes) : "token files", grouped(s.text->train.size()),
                     grouped(s.text->val.size()), grouped(c.vocab_size));
}

std::string model_line(const ModelConfig& c) {
  const ParameterCount n = count_parameters(c);
  std::string shape =
      c.recurrent()
          ? fmt::format("{}, {} layer{}, width {}", arch_name(c), c.n_layer, c.n_layer == 1 ? "" : "s", c.n_embd)
          : fmt::format("{} block{}, width {}, {} heads of {}, window {}", c.n_layer, c.n_layer == 1 ? "" : "s",
                        c.n_embd, c.n_head, c.head_width(), c.block_size);
  if (c.arch == Arch::encoder || c.arch == Arch::encoder_decoder) shape = arch_name(c) + ", " + shape;
  if (c.arch == Arch::encoder_decoder) shape += fmt::format(" and {} that read the source", c.encoder_layers());
  return fmt::format("{}: {} parameters ({} of them embeddings)", shape, grouped(n.total), grouped(n.embeddings));
}

}  // namespace bary
