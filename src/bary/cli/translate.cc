// SPDX-License-Identifier: Apache-2.0
// bary translate: a model of pairs answers sources.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/cli/checkpoint_kind.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/translate_text.h"
#include "bary/inspect/cross.h"
#include "bary/report/heat.h"

namespace bary {
namespace {

struct TranslateRequest {
  std::string source, source_file, target;
  BeamOptions beam;
  int64_t threads = 0;
  bool attention = false, json = false;
  Options options() {
    Options o("translate");
    o.add("source", &source, "text to answer");
    o.add("source_file", &source_file, "one source a line, - for standard input; instead of --source",
          {.value_name = "FILE"});
    o.add("target", &target, "how likely is this answer? (nats; nothing is written)");
    o.add("attention", &attention,
          "show what every token of the answer read of the source (with --json every head of every block)");
    o.group("Search");
    o.add("beam", &beam.beam, "beginnings that are followed (1: greedy)", {.min = 1, .max = 65536});
    o.add("n_best", &beam.n_best, "answers for each source, with their scores", {.min = 1, .max = 65536});
    o.add("length_penalty", &beam.length_penalty, "0: by probability, 1: by its mean over the tokens",
          {.min = 0, .max = 10});
    o.add("no_repeat_ngram", &beam.no_repeat_ngram, "no so many tokens in a row twice (0: anything goes)", {.min = 0});
    o.add("max_tokens", &beam.max_tokens, "of an answer (0: as long as trained, or twice the source)",
          {.min = 0, .max = 1 << 20});
    o.group("Running");
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("json", &json, "print answers and scores as JSON");
    return o;
  }
};

void check_options(const Options& o) {
  if (o.asked("target")) {
    o.refuse({"source_file"}, "has many sources, and --target is the answer to one (--source)");
    o.refuse({"beam", "n_best", "length_penalty", "no_repeat_ngram", "max_tokens", "attention"},
             "is for answers that are written, and with --target none is");
  }
  if (o.asked("source_file")) o.refuse({"source"}, "is one source, and --source_file has others");
  BARY_CHECK(o.asked("source") || o.asked("source_file"), "translate: no source came; give --source TEXT{}",
             o.asked("target") ? "" : ", or --source_file FILE with one a line");
}

std::vector<std::string> sources_of(const TranslateRequest& r, const Io& io) {
  if (r.source_file.empty()) return {r.source};
  const std::vector<std::string> lines = read_lines(r.source_file, io, BlankLines::refused);
  BARY_CHECK(!lines.empty(), "translate: {} holds no source; write one a line", r.source_file);
  return lines;
}

CodedPair coded(const Tokenizer& reads, const std::string& source, const std::vector<int32_t>& target) {
  BARY_CHECK(!source.empty(), "translate: the source is empty; give --source TEXT");
  return {source_tokens(reads, source), target};
}

std::vector<std::string> pieces(const Tokenizer& t, std::span<const int32_t> ids) {
  std::vector<std::string> out;
  for (int32_t id : ids) out.push_back(t.is_special(id) ? std::string(t.bytes_of(id)) : t.decode(std::span(&id, 1)));
  return out;
}

// What the tokens of an answer read of its source
struct CrossReading {
  std::vector<std::string> answer, source;  // rows, columns
  std::vector<Tensor> blocks;               // (1, heads, rows, columns)
};

CrossReading reading_of(const LoadedSeq2Seq& m, const std::string& source, const Hypothesis& h) {
  const CodedPair pair = coded(m.source, source, h.ids);
  CrossReading r{pieces(m.target, h.ids), pieces(m.source, pair.source),
                 cross_patterns(*m.model, batch_of(std::span(&pair, 1), pair_tokens(m.target)))};
  r.answer.push_back("<eos>");
  return r;
}

void show_attention(const CrossReading& r, Io& io) {
  for (size_t i = 0; i < r.blocks.size(); ++i) {
    io.print(fmt::format("\nblock {}: what each token of the answer read (mean of {} heads)\n", i, r.blocks[i].dim(1)));
    io.print(text_heatmap(mean_over_heads(r.blocks[i]).to_vector(), r.answer, r.source, io.unicode));
  }
}

nlohmann::json to_json(const CrossReading& r) {
  nlohmann::json blocks = nlohmann::json::array();
  for (const Tensor& pattern : r.blocks) {
    const std::vector<float> values = pattern.to_vector();
    nlohmann::json heads = nlohmann::json::array();
    auto at = values.begin();
    for (int64_t h = 0; h < pattern.dim(1); ++h) {
      nlohmann::json rows = nlohmann::json::array();
      for (size_t t = 0; t < r.answer.size(); ++t, at += std::ssize(r.source))
        rows.push_back(std::vector<float>(at, at + std::ssize(r.source)));
      heads.push_back(rows);
    }
    blocks.push_back(heads);
  }
  return {{"source_tokens", r.source}, {"answer_tokens", r.answer}, {"blocks", blocks}};
}

nlohmann::json to_json(const Tokenizer& target, const std::string& source, const std::vector<Hypothesis>& found) {
  nlohmann::json answers = nlohmann::json::array();
  for (const Hypothesis& h : found)
    answers.push_back({{"text", target.decode(h.ids)},
                       {"ids", h.ids},
                       {"log_probability", h.log_probability},
                       {"score", h.score},
                       {"ended", h.ended}});
  return {{"source", source}, {"answers", answers}};
}

// How likely the target is, by `log_p` of it coded
int score_target(const TranslateRequest& r, const Tokenizer& source, const Tokenizer& target,
                 const std::function<double(const CodedPair&)>& log_p, Io& io) {
  const CodedPair pair = coded(source, r.source, target.encode(r.target, SpecialPolicy::as_text()));
  const double p = log_p(pair);
  if (r.json) {
    io.print(dump_json({{"source", r.source}, {"target", r.target}, {"log_probability", p}}) + "\n");
  } else {
    io.print(fmt::format("log p = {:.6f} nats over {} tokens and the end\n", p, pair.target.size()));
  }
  return kExitOk;
}

// What a kind of model gives for sources; `on_token` (or none) hears the tokens of a single one as they come.
using OnToken = std::function<void(int32_t token)>;
using Answers = std::function<std::vector<std::vector<Hypothesis>>(const std::vector<std::string>& sources,
                                                                   const OnToken& on_token)>;
using Read = std::function<CrossReading(const std::string& source, const Hypothesis& best)>;

int answer(const TranslateRequest& r, const Tokenizer& target, const Answers& answers, const Read& read, Io& io) {
  const std::vector<std::string> sources = sources_of(r, io);
  InterruptGuard guard;
  const bool stream = sources.size() == 1 && r.beam.beam == 1 && !r.json;
  StreamDecoder decoder(target);
  const OnToken print = [&](int32_t token) { io.print(decoder.push(token)), io.flush(); };
  const auto found = answers(sources, stream ? print : OnToken());
  if (stream) io.print(decoder.flush() + "\n");
  nlohmann::json all = nlohmann::json::array();
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool reads = r.attention && !found[i].empty();
    if (r.json) {
      all.push_back(to_json(target, sources[i], found[i]));
      if (reads) all.back()["attention"] = to_json(read(sources[i], found[i][0]));
      continue;
    }
    for (const Hypothesis& h : found[i]) {
      if (r.beam.n_best > 1) io.print(fmt::format("{:10.4f}  ", h.score));
      if (!stream) io.print(target.decode_text(h.ids) + "\n");
    }
    if (reads) show_attention(read(sources[i], found[i][0]), io);
  }
  if (r.json) io.print(dump_json(all) + "\n");
  return interrupted() ? kExitInterrupted : kExitOk;
}

// One stack has neither a search nor a place where it reads the source.
int ask_one_stack(const std::string& folder, const TranslateRequest& r, const Options& o, Io& io) {
  o.refuse({"beam", "n_best", "length_penalty", "no_repeat_ngram", "attention"},
           fmt::format("is for a model with a source of its own, and {} is one stack, which goes on with the likeliest "
                       "token",
                       folder));
  LoadedModel m = load_model(folder);
  BARY_CHECK(m.tokenizer.has_value(), "translate: {} has no tokenizer.json", m.folder.string());
  const OneStack stack{*m.model, *m.tokenizer, reads_prefix(m)};
  if (o.is_set("target")) {
    LineOptions options;
    options.prefix = stack.prefix, options.tokens = pair_tokens(*m.tokenizer);
    auto log_p = [&](const CodedPair& pair) { return log_probability(*m.model, pair, options); };
    return score_target(r, *m.tokenizer, *m.tokenizer, log_p, io);
  }
  auto answers = [&](const std::vector<std::string>& sources, const OnToken& on_token) {
    LineOptions options;
    options.max_tokens = r.beam.max_tokens, options.cancelled = [] { return interrupted(); };
    options.on_token = on_token;
    return translate(stack, sources, options);
  };
  return answer(r, *m.tokenizer, answers, {}, io);
}

int ask_pair_model(const std::string& folder, const TranslateRequest& r, const Options& o, Io& io) {
  LoadedSeq2Seq m = load_seq2seq(folder);
  if (o.is_set("target")) {
    auto log_p = [&](const CodedPair& pair) {
      m.model->ensure_positions(static_cast<int64_t>(pair.source.size()), static_cast<int64_t>(pair.target.size()) + 1);
      return log_probabilities(*m.model, batch_of(std::span(&pair, 1), pair_tokens(m.target)))[0];
    };
    return score_target(r, m.source, m.target, log_p, io);
  }
  auto answers = [&](const std::vector<std::string>& sources, const OnToken& on_token) {
    BeamOptions options = r.beam;
    options.cancelled = [] { return interrupted(); };
    if (on_token) options.on_token = [&](size_t, int32_t token) { on_token(token); };
    return translate(Sides{*m.model, m.source, m.target}, sources, options);
  };
  auto read = [&](const std::string& source, const Hypothesis& best) { return reading_of(m, source, best); };
  return answer(r, m.target, answers, read, io);
}

int run_translate(std::span<const std::string> args, Io& io) {
  TranslateRequest r;
  Options o = r.options();
  auto rest = o.parse_args(args);
  BARY_CHECK(rest.size() == 1, "translate: one model answers, {} came; name the folder of a run or checkpoint",
             rest.size());
  check_options(o);
  set_threads(static_cast<int>(r.threads));
  return kind_of(rest[0]).one_stack() ? ask_one_stack(rest[0], r, o, io) : ask_pair_model(rest[0], r, o, io);
}

}  // namespace

Command translate_command() {
  return {"translate",
          "let a model of pairs answer",
          "RUN|CHECKPOINT --source TEXT [--key value ...]",
          {{"bary translate runs/reverse --source abcdef", "the most likely answer, token by token"},
           {"bary translate runs/numbers --source 1984 --beam 4 --n_best 3", "three answers with their scores"},
           {"bary translate runs/reverse --source abcdef --attention", "and what each token read of the source"},
           {"bary translate runs/numbers --source 7 --target seven", "how likely is this answer?"},
           {"cat sources.txt | bary translate runs/numbers --source_file - --json", "many, for a program"}},
          [] { return TranslateRequest().options().help(); },
          run_translate};
}

}  // namespace bary
