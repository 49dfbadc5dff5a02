// SPDX-License-Identifier: Apache-2.0
// bary tokenizer show: what a vocabulary holds, and how it cuts a text.
#include <fmt/format.h>

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/quote.h"
#include "bary/cli/token_json.h"
#include "bary/cli/tokenizer_commands.h"
#include "bary/cli/tokenizer_source.h"
#include "bary/report/format.h"
#include "bary/report/table.h"

namespace bary {
namespace {

struct ShowRequest {
  std::string tokenizer = "tokenizer.json", text;
  int64_t merges = 20;
  bool json = false;
};

Options describe(ShowRequest& r) {
  Options o("tokenizer show");
  o.add("tokenizer", &r.tokenizer, kTokenizerHelp, {.value_name = "FILE"});
  o.add("text", &r.text, "show how this text is cut, and the merges of each piece");
  o.add("merges", &r.merges, "how many merges to list (with --json: none unless asked for)",
        {.min = 0, .words = {{"all", INT32_MAX}}});
  o.add("json", &r.json, "print as JSON");
  return o;
}

Json facts_of(const Tokenizer& tokenizer) {
  Json specials = Json::object();
  for (const auto& special : tokenizer.specials()) specials[special.text] = special.id;
  return {{"kind", tokenizer_kind_name(tokenizer.kind())},
          {"vocab_size", tokenizer.vocab_size()},
          {"merges", tokenizer.parts().merges.size()},
          {"pattern", pattern_name(tokenizer.pattern())},
          {"specials", specials},
          {"ties", tokenizer.parts().training.ties},
          {"fingerprint", tokenizer.fingerprint_hex()},
          {"corpus_sha256", tokenizer.parts().training.corpus_sha256}};
}

size_t shown_merges(const TokenizerParts& parts, int64_t limit) {
  return static_cast<size_t>(std::min<int64_t>(limit, std::ssize(parts.merges)));
}

bool counted(const TokenizerParts& parts) { return parts.training.counts.size() == parts.merges.size(); }

Json merges_json(const Tokenizer& tokenizer, int64_t limit) {
  const TokenizerParts& parts = tokenizer.parts();
  Json list = Json::array();
  for (size_t i = 0; i < shown_merges(parts, limit); ++i) {
    list.push_back(merge_json(tokenizer, parts.merges[i]));
    if (counted(parts)) list.back()["count"] = parts.training.counts[i];
  }
  return list;
}

std::string merges_table(const Tokenizer& tokenizer, int64_t limit) {
  const TokenizerParts& parts = tokenizer.parts();
  Table table({{"rank", Align::right}, {"left"}, {"right"}, {"makes"}, {"id", Align::right}, {"count", Align::right}});
  for (size_t i = 0; i < shown_merges(parts, limit); ++i) {
    const BpeMerge& merge = parts.merges[i];
    table.row({grouped(static_cast<int64_t>(i)), quote(tokenizer.bytes_of(merge.left)),
               quote(tokenizer.bytes_of(merge.right)), quote(tokenizer.bytes_of(merge.result)),
               std::to_string(merge.result), counted(parts) ? grouped(parts.training.counts[i]) : ""});
  }
  return table.text();
}

void show_vocabulary(const Tokenizer& tokenizer, const ShowRequest& r, bool merges_asked, Io& io) {
  Json facts = facts_of(tokenizer);
  if (r.json) {
    if (merges_asked) facts["first_merges"] = merges_json(tokenizer, r.merges);
    io.print(dump_json(facts) + "\n");
    return;
  }
  for (const char* key : {"kind", "vocab_size", "merges", "pattern", "ties", "fingerprint", "corpus_sha256"}) {
    std::string value = facts[key].is_string() ? facts[key].get<std::string>() : dump_json(facts[key], -1);
    if (!value.empty()) io.print(fmt::format("{:<14} {}\n", key, printable(value)));
  }
  for (const auto& special : tokenizer.specials())
    io.print(fmt::format("{:<14} {} {}\n", "special", special.id, quote(special.text)));
  if (r.merges > 0 && !tokenizer.parts().merges.empty()) io.print("\n" + merges_table(tokenizer, r.merges));
}

Json text_json(const Tokenizer& tokenizer, const std::string& text, std::span<const int32_t> ids) {
  Json tokens = Json::array(), pieces = Json::array();
  for (int32_t id : ids) tokens.push_back(token_json(tokenizer, id));
  if (tokenizer.kind() == TokenizerKind::bpe) {
    PieceScanner scanner(tokenizer.pattern(), text);
    for (std::string_view piece; scanner.next(piece);) {
      Json merges = Json::array();
      for (const auto& step : tokenizer.explain(piece)) merges.push_back(merge_json(tokenizer, step.merge));
      pieces.push_back({{"text", std::string(piece)}, {"bytes", hexadecimal(piece)}, {"merges", merges}});
    }
  }
  return {{"bytes", text.size()}, {"tokens", tokens}, {"pieces", pieces}};
}

void show_text(const Tokenizer& tokenizer, const ShowRequest& r, Io& io) {
  std::vector<int32_t> ids = tokenizer.encode(r.text, SpecialPolicy::as_text());
  if (r.json) return io.print(dump_json(text_json(tokenizer, r.text, ids)) + "\n");
  Table table({{"id", Align::right}, {"token"}});
  for (int32_t id : ids) table.row({std::to_string(id), quote(tokenizer.bytes_of(id))});
  io.print(fmt::format("{} bytes, {} tokens\n\n", grouped(std::ssize(r.text)), grouped(std::ssize(ids))) +
           table.text());
  if (tokenizer.kind() != TokenizerKind::bpe) return;
  PieceScanner pieces(tokenizer.pattern(), r.text);
  for (std::string_view piece; pieces.next(piece);) {
    std::string line = quote(piece) + ":";
    for (const auto& step : tokenizer.explain(piece)) {
      line += fmt::format(" {}+{}", quote(tokenizer.bytes_of(step.merge.left)),
                          quote(tokenizer.bytes_of(step.merge.right)));
    }
    io.print("\n" + line);
  }
  io.print("\n");
}

int run_show(std::span<const std::string> args, Io& io) {
  ShowRequest r;
  Options options = describe(r);
  auto files = options.parse_args(args);
  BARY_CHECK(files.size() <= 1, "tokenizer show: {} files came, one is shown", files.size());
  if (!files.empty()) options.refuse({"tokenizer"}, "is another tokenizer than " + files[0]);
  if (options.asked("text")) options.refuse({"merges"}, "lists a vocabulary's merges, and --text shows its own");
  Tokenizer tokenizer = load_tokenizer(files.empty() ? r.tokenizer : files[0]);
  if (options.is_set("text"))
    show_text(tokenizer, r, io);
  else
    show_vocabulary(tokenizer, r, options.asked("merges"), io);
  return kExitOk;
}

}  // namespace

Command tokenizer_show_command() {
  return {
      "tokenizer show",
      "look inside a vocabulary",
      "[FILE] [--key value ...]",
      {{"bary tokenizer show tok.json", "size, kind, special tokens and the first merges with their counts"},
       {"bary tokenizer show tok.json --text \"unhappiness\"", "the tokens of a text and the merges that make them"},
       {"bary tokenizer show runs/shakespeare --merges all | less", "every merge of a trained model's tokenizer"}},
      [] {
        ShowRequest r;
        return describe(r).help();
      },
      run_show};
}

}  // namespace bary
