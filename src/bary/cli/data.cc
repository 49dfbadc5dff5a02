// SPDX-License-Identifier: Apache-2.0
// bary data: a text becomes token files that training reads from where they lie.
#include "bary/cli/data.h"

#include <fmt/format.h>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/cli/tokenizer_source.h"
#include "bary/io/run_folder.h"
#include "bary/report/format.h"
#include "bary/text/batch.h"
#include "bary/text/corpus.h"
#include "bary/text/token_file.h"

namespace bary {
namespace {

struct DataRequest {
  std::string tokenizer = "tokenizer.json", corpus_path, out_dir;
  double val_fraction = 0.1;
  bool json = false;
};

Options describe(DataRequest& r) {
  Options o("data");
  o.add("out_dir", &r.out_dir, "folder to write train.bin, val.bin, meta.json and tokenizer.json to",
        {.value_name = "FOLDER"});
  o.add("tokenizer", &r.tokenizer, kTokenizerHelp, {.value_name = "FILE"});
  o.add("val_fraction", &r.val_fraction, "share of the tokens held out, from the end",
        {.min = 0, .max = 1, .below_max = true});
  o.add("corpus", &r.corpus_path, "where the text that a name stands for is looked for first", {.value_name = "PATH"});
  o.add("json", &r.json, "print the result as JSON");
  return o;
}

// Documents one after another; where the tokenizer has a token that a text begins with, each begins with it.
std::vector<int32_t> ids_of(const Corpus& corpus, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const auto& document : corpus.documents) {
    if (auto start = tokenizer.start_token()) ids.push_back(*start);
    auto more = tokenizer.encode(document, SpecialPolicy::as_text());
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

void write_part(const std::filesystem::path& path, TokenSpan tokens, int64_t vocab_size) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
  tokens.copy(0, ids);
  write_token_file(path, ids, vocab_size);
}

int run_data(std::span<const std::string> args, Io& io) {
  DataRequest r;
  Options options = describe(r);
  auto texts = options.parse_args(args);
  BARY_CHECK(texts.size() == 1, "data: one text is read, {} came; name a file, a folder, - or tinyshakespeare",
             texts.size());
  BARY_CHECK(!r.out_dir.empty(), "data: --out_dir is missing; name the folder to write to");
  Tokenizer tokenizer = load_tokenizer(r.tokenizer);
  std::filesystem::path folder = r.out_dir;
  refuse_to_replace_a_models("data", folder / "tokenizer.json");
  check_writable(folder);  // refused before the work, and nothing is left if the text is refused
  CorpusOptions where;
  where.corpus_path = r.corpus_path;
  where.notice = [&](const std::string& line) { io.note(line); };
  Corpus corpus = load_corpus(texts[0], where);
  std::vector<int32_t> ids = ids_of(corpus, tokenizer);
  TokenSplit split = split_tokens(ids, r.val_fraction);
  BARY_CHECK(!split.train.empty(), "data: {} tokens with --val_fraction {} leave none to learn from; lower it",
             ids.size(), r.val_fraction);
  ensure_folder(folder);
  int64_t vocab_size = tokenizer.vocab_size();
  TokenMeta meta{vocab_size,
                 token_type_for_vocabulary(vocab_size),
                 tokenizer.fingerprint_hex(),
                 corpus.name,
                 corpus.sha256,
                 corpus.bytes,
                 split.train.size(),
                 split.val.size()};
  write_part(folder / "train.bin", split.train, vocab_size);
  if (!split.val.empty())
    write_part(folder / "val.bin", split.val, vocab_size);
  else
    std::filesystem::remove(folder / "val.bin");  // one of an earlier text would pass for this one's
  tokenizer.save(folder / "tokenizer.json");
  write_token_meta(folder, meta);
  if (r.json) {
    io.print(dump_json({{"folder", r.out_dir},
                        {"train_tokens", meta.train_tokens},
                        {"val_tokens", meta.val_tokens},
                        {"vocab_size", vocab_size},
                        {"type", name_of(meta.type)},
                        {"corpus_sha256", corpus.sha256}}) +
             "\n");
    return kExitOk;
  }
  io.print(fmt::format("{}: {} of text, {} tokens to learn from, {} held out, {} each\n", r.out_dir,
                       bytes_text(corpus.bytes), grouped(meta.train_tokens), grouped(meta.val_tokens),
                       name_of(meta.type)));
  return kExitOk;
}

}  // namespace

Command data_command() {
  return {
      "data",
      "turn a text into token files",
      "FILE|FOLDER|-|tinyshakespeare --out_dir FOLDER [--key value ...]",
      {{"bary data tinyshakespeare --tokenizer tok.json --out_dir data/shakespeare",
        "train.bin and val.bin, as nanoGPT reads them"},
       {"bary data books/ --tokenizer byte --out_dir data/books", "one token per byte, every text file below books/"},
       {"zcat dump.gz | bary data - --tokenizer tok.json --val_fraction 0.01 --out_dir data/dump",
        "from a pipe, one percent held out"}},
      [] {
        DataRequest r;
        return describe(r).help();
      },
      run_data};
}

}  // namespace bary
