// SPDX-License-Identifier: Apache-2.0
// bary bench tokenizer: learning merges, coding and decoding on one thread.
#include <fmt/format.h>

#include <iostream>

#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/bench/step.h"
#include "bary/bench/tokenizer.h"
#include "bary/cli/command.h"
#include "bary/cli/tokenizer_source.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"
#include "bary/report/table.h"
#include "bary/text/corpus.h"
#include "bary/text/tokenizer_json.h"

namespace bary {
namespace {

namespace fs = std::filesystem;

struct TokenizerRequest {
  BpeOptions bpe;
  std::string tokenizer, corpus_path;
  int64_t times = 9;
  bool lines = false, json = false;
  Options options() {
    Options o("bench tokenizer");
    o.add("tokenizer", &tokenizer,
          "code with this one, not with the one that was learned: file, folder with tokenizer.json or GPT-2's "
          "encoder.json and vocab.bpe, or byte",
          {.value_name = "FILE"});
    o.add("vocab_size", &bpe.vocab_size, "tokens to learn: 256 bytes and the merges", {.min = 256, .max = 10'000'000});
    o.add("ties", &bpe.ties, {{"first", TieRule::first}, {"hf", TieRule::hf}, {"bytes", TieRule::bytes}},
          "which of equally frequent pairs is joined");
    o.add("times", &times, "how often each is timed", {.min = 2, .max = 1e6});
    o.add("corpus", &corpus_path, "where the text that a name stands for is looked for first", {.value_name = "PATH"});
    o.add("lines", &lines, "answer lines of standard input with lines of times (bench/rivals)");
    o.add("json", &json, "print as JSON");
    return o;
  }
};

std::optional<Tokenizer> named_tokenizer(const std::string& source) {
  if (source.empty()) return std::nullopt;
  const fs::path vocab = fs::path(source) / "encoder.json", merges = fs::path(source) / "vocab.bpe";
  std::error_code ignored;
  if (!fs::exists(vocab, ignored) || !fs::exists(merges, ignored)) return load_tokenizer(source);
  return Tokenizer(tokenizer_parts_from_gpt2_files(read_file(vocab), read_file(merges), source));
}

std::string joined(Corpus corpus) {
  std::string text;
  if (corpus.documents.size() == 1) return std::move(corpus.documents[0]);
  for (const std::string& document : corpus.documents) text += document;
  return text;
}

// "text PATH" changes the text; "train N", "encode N" and "decode N" answer with the milliseconds of N times. The first
// of "encode" is by a coder that has seen no text.
class LineServer {
 public:
  LineServer(const TokenizerRequest& request, std::string text)
      : request_(request), text_(std::move(text)), tokenizer_(named_tokenizer(request.tokenizer)) {
    if (!tokenizer_) learn(1);
  }
  Json about() const {
    return {
        {"name", "bary"}, {"threads", threads()}, {"bytes", text_.size()}, {"vocab_size", tokenizer_->vocab_size()}};
  }
  Json answer(const std::string& line) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string verb = line.substr(0, blank), rest = line.substr(std::min(blank + 1, line.size()));
    if (verb == "text") {
      text_ = read_file(rest);
      return {{"bytes", text_.size()}};
    }
    const bool known = verb == "train" || verb == "encode" || verb == "decode";
    const bool counts = !rest.empty() && rest.size() < 7 && rest.find_first_not_of("0123456789") == std::string::npos;
    const int64_t n = known && counts ? std::stoll(rest) : 0;
    BARY_CHECK(
        n > 0,
        "bench: got '{}', expected \"text PATH\", \"train N\", \"encode N\", \"decode N\" (N from 1 to 999999) or "
        "\"quit\"",
        line);
    if (verb == "train") return learn(n);
    if (verb == "decode") return {{"ms", milliseconds(time_decoding(*tokenizer_, text_, n))}};
    const CodingTimes coding = time_encoding(*tokenizer_, text_, n);
    return {{"ms", milliseconds(coding.seconds)}, {"ids", coding.ids.size()}, {"sha256", ids_sha256(coding.ids)}};
  }

 private:
  Json learn(int64_t times) {
    const LearningTimes learning = time_learning(text_, request_.bpe, times);
    const Tokenizer learned = Tokenizer::bpe(learning.training, request_.bpe);
    if (!tokenizer_) tokenizer_ = learned;
    return {{"ms", milliseconds(learning.seconds)},
            {"merges", learning.training.steps.size()},
            {"fingerprint", learned.fingerprint_hex()}};
  }
  static std::vector<double> milliseconds(std::vector<double> seconds) {
    for (double& s : seconds) s *= 1e3;
    return seconds;
  }

  const TokenizerRequest& request_;
  std::string text_;
  std::optional<Tokenizer> tokenizer_;
};

int answer_lines(LineServer server, Io& io) {
  io.print(dump_json(server.about(), -1) + "\n");
  io.flush();
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    io.print(dump_json(server.answer(line), -1) + "\n");
    io.flush();
  }
  return kExitOk;
}

Json as_json(const TokenizerFigures& f) {
  return {{"threads", threads()},
          {"bytes", f.bytes},
          {"ids", f.ids},
          {"merges", f.merges},
          {"learn_ms", f.learn_seconds * 1e3},
          {"encode_cold_mb_s", f.cold_mb_s},
          {"encode_mb_s", f.encode_mb_s},
          {"decode_mb_s", f.decode_mb_s},
          {"repeated", f.kRepeated},
          {"repeated_ms", f.repeated_seconds * 1e3},
          {"repeated_ten_times_ms", f.repeated_ten_times_seconds * 1e3},
          {"growth", f.growth()}};
}

std::string as_table(const TokenizerFigures& f) {
  Table table({{"work on one thread"}, {"median", Align::right}, {"MB/s", Align::right}});
  const double megabytes = static_cast<double>(f.bytes) / 1e6;
  const auto row = [&](const std::string& work, double mb, double seconds) {
    table.row({work, fmt::format("{:.2f} ms", seconds * 1e3), fmt::format("{:.1f}", mb / seconds)});
  };
  row(fmt::format("learn {} merges", f.merges), megabytes, f.learn_seconds);
  row(fmt::format("encode, a coder that has seen no text: {} ids", grouped(f.ids)), megabytes, megabytes / f.cold_mb_s);
  row("encode again", megabytes, megabytes / f.encode_mb_s);
  row("decode", megabytes, megabytes / f.decode_mb_s);
  const double repeated = static_cast<double>(f.kRepeated) / 1e6;
  row(fmt::format("encode one letter {} times", grouped(f.kRepeated)), repeated, f.repeated_seconds);
  row(fmt::format("encode one letter {} times", grouped(10 * f.kRepeated)), 10 * repeated,
      f.repeated_ten_times_seconds);
  return table.text();
}

int run_bench(std::span<const std::string> args, Io& io) {
  TokenizerRequest r;
  Options o = r.options();
  const auto files = o.parse_args(args);
  BARY_CHECK(files.size() <= 1, "bench tokenizer: one text is coded, {} came; name a file or a folder", files.size());
  BARY_CHECK(!r.lines || files.empty() || files[0] != "-",
             "bench tokenizer: with --lines standard input holds the requests, not the text; name a file");
  set_threads(1);
  CorpusOptions where;
  where.corpus_path = r.corpus_path;
  where.notice = [&](const std::string& line) { io.note(line); };
  std::string text = joined(load_corpus(files.empty() ? "tinyshakespeare" : files[0], where));
  if (r.lines) return answer_lines(LineServer(r, std::move(text)), io);
  const std::optional<Tokenizer> tokenizer = named_tokenizer(r.tokenizer);
  const TokenizerFigures f = measure_tokenizer(text, r.bpe, tokenizer ? &*tokenizer : nullptr, r.times);
  if (r.json) return io.print(dump_json(as_json(f)) + "\n"), kExitOk;
  io.print(as_table(f));
  io.print(fmt::format("ten times the letters take {:.1f} times the time\n", f.growth()));
  return kExitOk;
}

}  // namespace

Command bench_tokenizer_command() {
  return {"bench tokenizer",
          "time learning merges, coding and decoding on one thread",
          "[FILE|FOLDER|-|tinyshakespeare] [--key value ...]",
          {{"bary bench tokenizer", "768 merges learned on a megabyte of Shakespeare, which is then coded"},
           {"bary bench tokenizer book.txt --tokenizer tok.json --json", "another text and vocabulary, for a program"}},
          [] { return TokenizerRequest().options().help(); },
          run_bench};
}

}  // namespace bary
