// SPDX-License-Identifier: Apache-2.0
// bary embed: vectors of whole texts, and how alike they are.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/base/quote.h"
#include "bary/cli/checkpoint_kind.h"
#include "bary/cli/model_commands.h"
#include "bary/generate/sentence.h"
#include "bary/report/table.h"

namespace bary {
namespace {

constexpr size_t kMostCompared = 100;  // wider tables are read by nobody

struct EmbedRequest {
  std::string text_file;
  SentenceOptions sentence;
  int64_t threads = 0;
  bool json = false;
  Options options() {
    Options o("embed");
    o.add("text_file", &text_file, "one text a line, - for standard input; after those of the command line",
          {.value_name = "FILE"});
    o.add("pooling", &sentence.pooling, {{"mean", Pooling::mean}, {"first", Pooling::first}},
          "the mean over the text's tokens, or its first one (of an encoder)");
    o.group("Running");
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("json", &json, "print the vectors, a JSON object a line");
    return o;
  }
};

std::vector<std::string> texts_of(const EmbedRequest& r, std::span<const std::string> given, const Io& io) {
  std::vector<std::string> texts(given.begin(), given.end());
  if (!r.text_file.empty()) {
    const std::vector<std::string> lines = read_lines(r.text_file, io, BlankLines::refused);
    texts.insert(texts.end(), lines.begin(), lines.end());
  }
  BARY_CHECK(r.json ? !texts.empty() : texts.size() >= 2,
             "embed: {} texts came, expected {}; write them after the model, each in quotes, or one a line in "
             "--text_file{}",
             texts.size(), r.json ? "one or more" : "two or more to compare",
             r.json ? "" : " (or ask for vectors with --json)");
  BARY_CHECK(r.json || texts.size() <= kMostCompared,
             "embed: {} texts came and a table compares at most {}; ask for their vectors with --json", texts.size(),
             kMostCompared);
  return texts;
}

// JSON Lines: an object a text
std::string json_lines(const std::vector<std::string>& texts, const std::vector<Sentence>& sentences) {
  std::string lines;
  for (size_t i = 0; i < texts.size(); ++i)
    lines += dump_json({{"text", texts[i]}, {"tokens", sentences[i].ids.size()}, {"vector", sentences[i].vector}}, -1) +
             "\n";
  return lines;
}

std::string cosine_table(const std::vector<std::string>& texts, const std::vector<Sentence>& sentences) {
  std::vector<Column> columns{{"", Align::right}};
  for (size_t i = 0; i < texts.size(); ++i) columns.push_back({std::to_string(i + 1), Align::right});
  columns.push_back({"text"});
  Table table(columns);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::string> cells{std::to_string(i + 1)};
    for (const Sentence& other : sentences)
      cells.push_back(fmt::format("{:.4f}", cosine(sentences[i].vector, other.vector)));
    cells.push_back(quote(texts[i]));
    table.row(cells);
  }
  return table.text();
}

int run_embed(std::span<const std::string> args, Io& io) {
  EmbedRequest r;
  Options o = r.options();
  const auto rest = o.parse_args(args);
  BARY_CHECK(!rest.empty(), "embed: no model came; name the folder of a run or checkpoint, then the texts");
  const std::vector<std::string> texts = texts_of(r, std::span(rest).subspan(1), io);
  set_threads(static_cast<int>(r.threads));
  LoadedModel m = load_text_model(rest[0]);
  BARY_CHECK(m.tokenizer.has_value(), "embed: {} has no tokenizer.json, so it can read no text; train with a text",
             m.folder.string());
  const std::vector<Sentence> sentences = sentence_vectors(*m.model, *m.tokenizer, texts, r.sentence);
  io.print(r.json ? json_lines(texts, sentences) : cosine_table(texts, sentences));
  return kExitOk;
}

}  // namespace

Command embed_command() {
  return {"embed",
          "turn texts into vectors and compare them",
          "RUN|CHECKPOINT TEXT TEXT ... [--key value ...]",
          {{"bary embed runs/gaps \"Good morrow, sir\" \"Good day, my lord\" \"The king is dead\"",
            "the cosine of every two"},
           {"bary embed runs/gaps --text_file lines.txt --json", "a vector a line (JSON Lines), for a program"},
           {"bary embed runs/gaps --pooling first \"Go\" \"Come\"", "by the first token instead of the mean"}},
          [] { return EmbedRequest().options().help(); },
          run_embed};
}

}  // namespace bary
