// SPDX-License-Identifier: Apache-2.0
// bary tokenizer train: learns a vocabulary from a text.
#include <fmt/format.h>

#include "bary/base/clock.h"
#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/quote.h"
#include "bary/cli/token_json.h"
#include "bary/cli/tokenizer_commands.h"
#include "bary/cli/tokenizer_source.h"
#include "bary/io/run_folder.h"
#include "bary/report/format.h"
#include "bary/report/progress.h"
#include "bary/report/table.h"
#include "bary/text/corpus.h"
#include "bary/text/tokenizer.h"

namespace bary {
namespace {

struct TrainRequest {
  TokenizerKind kind = TokenizerKind::bpe;
  BpeOptions bpe;
  std::string corpus_path, specials, out = "tokenizer.json";
  bool trace = false, json = false;
};

Options describe(TrainRequest& r) {
  Options o("tokenizer train");
  o.add("tokenizer", &r.kind, {{"bpe", TokenizerKind::bpe}, {"char", TokenizerKind::chars}},
        "byte-level BPE, or nanoGPT's characters");
  o.add("vocab_size", &r.bpe.vocab_size, "tokens in all: 256 bytes, the merges, the special tokens",
        {.min = 256, .max = 10'000'000});
  o.add("ties", &r.bpe.ties, {{"first", TieRule::first}, {"hf", TieRule::hf}, {"bytes", TieRule::bytes}},
        "which of equally frequent pairs is joined: the first in the text, Hugging Face's choice, or by their bytes");
  o.add("pattern", &r.bpe.pattern, {{"gpt2", Pattern::gpt2}, {"none", Pattern::none}},
        "pieces that merges may not cross");
  o.add("min_frequency", &r.bpe.min_frequency, "a pair that occurs less often is not joined", {.min = 1});
  o.add("max_token_length", &r.bpe.max_token_length, "longest token in bytes, 0 for no limit", {.min = 0});
  o.add("specials", &r.specials, "special tokens, separated by commas", {.value_name = "A,B"});
  o.add("corpus", &r.corpus_path, "where the text that a name stands for is looked for first", {.value_name = "PATH"});
  o.add("out", &r.out, "file to write", {.value_name = "FILE"});
  o.add("trace", &r.trace, "print each merge with its count (with --json too)");
  o.add("json", &r.json, "print the result as JSON");
  return o;
}

std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t from = 0; from < list.size();) {
    size_t to = std::min(list.find(',', from), list.size());
    if (to > from) parts.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

struct Learned {
  Tokenizer tokenizer;
  BpeTraining training;  // empty for characters
};

Learned learn(TrainRequest& r, const Corpus& corpus, Io& io) {
  if (r.kind == TokenizerKind::chars) {
    std::string text;
    for (const auto& document : corpus.documents) text += document;
    return {Tokenizer::characters(text, r.bpe.specials), {}};
  }
  std::vector<std::string_view> documents(corpus.documents.begin(), corpus.documents.end());
  Stopwatch watch;
  double drawn = 0;
  r.bpe.progress = [&](int64_t done, int64_t wanted) {
    if (!io.err_is_terminal || watch.seconds() - drawn < 0.1) return;
    drawn = watch.seconds();
    io.draw(fmt::format("\rmerges {}/{}\x1b[K", grouped(done), grouped(wanted)));
  };
  BpeTraining training = train_bpe(documents, r.bpe);
  if (drawn > 0) io.draw("\r\x1b[K");
  return {Tokenizer::bpe(training, r.bpe, corpus.sha256), std::move(training)};
}

void print_trace(const Learned& learned, Io& io) {
  Table table({{"id", Align::right},
               {"left"},
               {"right"},
               {"count", Align::right},
               {"ties", Align::right},
               {"tokens", Align::right}});
  for (size_t i = 0; i < learned.training.steps.size(); ++i) {
    const BpeStep& step = learned.training.steps[i];
    table.row({std::to_string(256 + i), quote(learned.tokenizer.bytes_of(step.left)),
               quote(learned.tokenizer.bytes_of(step.right)), grouped(step.count), grouped(step.ties),
               grouped(step.tokens)});
  }
  io.print(table.text() + "\n");
}

Json trace_json(const Learned& learned) {
  Json trace = Json::array();
  for (size_t i = 0; i < learned.training.steps.size(); ++i) {
    const BpeStep& step = learned.training.steps[i];
    trace.push_back(merge_json(learned.tokenizer, {step.left, step.right, static_cast<int32_t>(256 + i)}));
    trace.back().update({{"count", step.count}, {"ties", step.ties}, {"tokens", step.tokens}});
  }
  return trace;
}

int run_train(std::span<const std::string> args, Io& io) {
  TrainRequest r;
  Options options = describe(r);
  auto files = options.parse_args(args);
  BARY_CHECK(files.size() <= 1, "tokenizer train: {} texts came, one is read; name a folder that holds them",
             files.size());
  if (r.kind == TokenizerKind::chars)
    options.refuse({"vocab_size", "ties", "pattern", "min_frequency", "max_token_length", "trace"},
                   "is for bpe, and --tokenizer char has one token for each character of the text");
  r.bpe.specials = split_at_commas(r.specials);
  Tokenizer::bytes(r.bpe.specials);  // which refuses those that could not be told from bytes, before the work
  auto folder = std::filesystem::path(r.out).parent_path();
  std::error_code ignored;
  BARY_CHECK(!std::filesystem::is_directory(r.out, ignored) && std::filesystem::path(r.out).has_filename(),
             "tokenizer train: --out {} is a folder; name the file, for example {}", r.out,
             (std::filesystem::path(r.out) / "tokenizer.json").string());
  refuse_to_replace_a_models("tokenizer train", r.out);
  check_writable(folder.empty() ? "." : folder);  // before the work; nothing is left if the text is refused
  CorpusOptions where;
  where.corpus_path = r.corpus_path;
  where.notice = [&](const std::string& line) { io.note(line); };
  Corpus corpus = load_corpus(files.empty() ? "tinyshakespeare" : files[0], where);
  Stopwatch watch;
  Learned learned = learn(r, corpus, io);
  double seconds = watch.seconds();
  int64_t tokens = learned.training.tokens;
  if (r.kind == TokenizerKind::chars) {
    for (const auto& document : corpus.documents) tokens += learned.tokenizer.count(document, SpecialPolicy::as_text());
  }
  if (!folder.empty()) ensure_folder(folder);
  learned.tokenizer.save(r.out);
  if (!learned.training.note.empty()) io.note(learned.training.note);
  double per_token = static_cast<double>(corpus.bytes) / static_cast<double>(std::max<int64_t>(tokens, 1));
  if (r.json) {
    Json json = {{"corpus", corpus.name},
                 {"corpus_sha256", corpus.sha256},
                 {"bytes", corpus.bytes},
                 {"tokens", tokens},
                 {"bytes_per_token", per_token},
                 {"vocab_size", learned.tokenizer.vocab_size()},
                 {"fingerprint", learned.tokenizer.fingerprint_hex()},
                 {"file", r.out},
                 {"seconds", seconds}};
    if (r.trace) json["trace"] = trace_json(learned);
    io.print(dump_json(json) + "\n");
    return kExitOk;
  }
  if (r.trace) print_trace(learned, io);
  io.print(fmt::format("{}: {} of text become {} tokens of {}, {:.3f} bytes each ({})\n", r.out,
                       bytes_text(corpus.bytes), grouped(tokens), grouped(learned.tokenizer.vocab_size()), per_token,
                       duration_text(seconds)));
  return kExitOk;
}

}  // namespace

Command tokenizer_train_command() {
  return {
      "tokenizer train",
      "learn a vocabulary from a text",
      "[FILE|FOLDER|-|tinyshakespeare] [--key value ...]",
      {{"bary tokenizer train tinyshakespeare --vocab_size 1024 --out tok.json",
        "1,024 tokens from a megabyte of Shakespeare"},
       {"bary tokenizer train books/ --vocab_size 8k --ties hf", "the same merges as Hugging Face's tokenizers learns"},
       {"bary tokenizer train notes.txt --trace | head -20", "the first merges with their counts"},
       {"bary tokenizer train input.txt --tokenizer char", "one token per character, as nanoGPT's small runs have it"}},
      [] {
        TrainRequest r;
        return describe(r).help();
      },
      run_train};
}

}  // namespace bary
