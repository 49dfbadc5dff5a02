// SPDX-License-Identifier: Apache-2.0
#include "bary/text/token_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/quote.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kScanStep = int64_t{1} << 16;  // ids looked at before one comparison
constexpr const char* kFormat = "bary-tokens-1";

template <class Id>
std::span<const Id> ids_of(const MappedFile& file) {
  return {reinterpret_cast<const Id*>(file.bytes().data()), file.bytes().size() / sizeof(Id)};
}

// The maximum of a block is one vector loop; only a block that breaks the rule is searched for the position.
template <class Id>
void check_ids(std::span<const Id> ids, int64_t vocab_size, const std::string& name) {
  for (int64_t begin = 0; begin < std::ssize(ids); begin += kScanStep) {
    const auto block =
        ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(kScanStep, std::ssize(ids) - begin)));
    Id largest = 0;
    for (const Id id : block) largest = std::max(largest, id);
    if (largest < vocab_size) continue;
    int64_t at = begin;
    while (ids[static_cast<size_t>(at)] < vocab_size) ++at;
    fail(
        "{}: id {} at position {} is not below vocab_size {}; use the tokenizer that made this file, or the other id "
        "width (uint16/uint32)",
        name, ids[static_cast<size_t>(at)], at, vocab_size);
  }
}

void check_vocab_size(int64_t vocab_size, const std::string& name) {
  BARY_CHECK(vocab_size >= 1 && vocab_size <= INT32_MAX,
             "{}: vocab_size is {}, it must be 1 to {}; use the size of the tokenizer that made the ids", name,
             vocab_size, INT32_MAX);
}

int64_t count_member(const Json& object, const char* key, const std::string& what) {
  const int64_t value = json_integer(object, key, what);
  BARY_CHECK(value >= 0, "{}: {} is {}, a count is needed; write the folder again with bary data", what, key, value);
  return value;
}

void check_meta(const TokenMeta& meta, const TokenFolderOptions& options, const std::string& name) {
  BARY_CHECK(options.vocab_size == 0 || options.vocab_size == meta.vocab_size,
             "{}: these ids have a vocabulary of {}, the tokenizer in use has {}; use the tokenizer that made them, or "
             "make the folder again with bary data",
             name, meta.vocab_size, options.vocab_size);
  BARY_CHECK(
      options.tokenizer.empty() || meta.tokenizer.empty() || options.tokenizer == meta.tokenizer,
      "{}: these ids were made by the tokenizer {}, the one in use is {}; use the tokenizer that made them, or make "
      "the folder again with bary data",
      name, quote(meta.tokenizer), quote(options.tokenizer));
}

void check_count(const TokenFile& file, int64_t stated, const std::string& name) {
  BARY_CHECK(file.size() == stated, "{} has {} tokens, {} says {}; make the folder again with bary data",
             file.path().string(), file.size(), name, stated);
}

}  // namespace

int64_t bytes_per_token(TokenType type) { return type == TokenType::uint16 ? 2 : 4; }
const char* name_of(TokenType type) { return type == TokenType::uint16 ? "uint16" : "uint32"; }
TokenType token_type_for_vocabulary(int64_t vocab_size) {
  return vocab_size <= 65536 ? TokenType::uint16 : TokenType::uint32;
}

TokenFile::TokenFile(const fs::path& path, int64_t vocab_size, TokenType type) : file_(path), type_(type) {
  const std::string name = path.string();
  check_vocab_size(vocab_size, name);
  BARY_CHECK(file_.size() > 0, "{}: the file is empty, at least one token is needed; make it again with bary data",
             name);
  BARY_CHECK(file_.size() % bytes_per_token(type) == 0,
             "{}: {} bytes are no whole number of {} ids ({} bytes each); the file is cut or is not a token file", name,
             file_.size(), name_of(type), bytes_per_token(type));
  if (type == TokenType::uint16) {
    check_ids(ids_of<uint16_t>(file_), vocab_size, name);
  } else {
    check_ids(ids_of<uint32_t>(file_), vocab_size, name);
  }
}

TokenSpan TokenFile::tokens() const {
  return type_ == TokenType::uint16 ? TokenSpan(ids_of<uint16_t>(file_)) : TokenSpan(ids_of<uint32_t>(file_));
}

TokenFileWriter::TokenFileWriter(const fs::path& path, int64_t vocab_size)
    : file_(path), name_(path.string()), vocab_size_(vocab_size), type_(token_type_for_vocabulary(vocab_size)) {
  check_vocab_size(vocab_size, name_);
}

void TokenFileWriter::append(std::span<const int32_t> ids) {
  std::string bytes;
  for (size_t begin = 0; begin < ids.size(); begin += kScanStep) {
    bytes.clear();
    for (const int32_t id : ids.subspan(begin, std::min(size_t{kScanStep}, ids.size() - begin))) {
      BARY_CHECK(id >= 0 && id < vocab_size_,
                 "{}: id {} at position {} is not in 0..{}; use the vocabulary of the tokenizer that made it", name_,
                 id, written_, vocab_size_ - 1);
      const auto value = static_cast<uint32_t>(id);
      for (int64_t i = 0; i < bytes_per_token(type_); ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 255));
      ++written_;
    }
    file_.write(bytes);
  }
}

void TokenFileWriter::commit() { file_.commit(); }

void write_token_file(const fs::path& path, std::span<const int32_t> ids, int64_t vocab_size) {
  TokenFileWriter writer(path, vocab_size);
  writer.append(ids);
  writer.commit();
}

void write_token_meta(const fs::path& folder, const TokenMeta& meta) {
  const Json json = {{"format", kFormat},
                     {"vocab_size", meta.vocab_size},
                     {"dtype", name_of(meta.type)},
                     {"tokenizer", meta.tokenizer},
                     {"corpus", meta.corpus},
                     {"corpus_sha256", meta.corpus_sha256},
                     {"corpus_bytes", meta.corpus_bytes},
                     {"train_tokens", meta.train_tokens},
                     {"val_tokens", meta.val_tokens}};
  write_file_atomic(folder / "meta.json", dump_json(json) + "\n");
}

std::optional<TokenMeta> read_token_meta(const fs::path& folder) {
  const fs::path path = folder / "meta.json";
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const std::string what = path.string();
  const Json json = parse_json(read_file(path), what);
  const std::string format = json_string(json, "format", what);
  BARY_CHECK(format == kFormat, "{}: the format is {}, this version reads \"{}\"; make the folder again with bary data",
             what, quote(format), kFormat);
  const std::string type = json_string(json, "dtype", what);
  BARY_CHECK(type == "uint16" || type == "uint32", "{}: dtype is {}, it must be \"uint16\" or \"uint32\"", what,
             quote(type));
  TokenMeta meta;
  meta.vocab_size = json_integer(json, "vocab_size", what);
  check_vocab_size(meta.vocab_size, what);
  meta.type = type == "uint16" ? TokenType::uint16 : TokenType::uint32;
  meta.tokenizer = json_string(json, "tokenizer", what);
  meta.corpus = json_string(json, "corpus", what);
  meta.corpus_sha256 = json_string(json, "corpus_sha256", what);
  meta.corpus_bytes = count_member(json, "corpus_bytes", what);
  meta.train_tokens = count_member(json, "train_tokens", what);
  meta.val_tokens = count_member(json, "val_tokens", what);
  return meta;
}

TokenFolder open_token_folder(const fs::path& folder, const TokenFolderOptions& options) {
  const std::string name = (folder / "meta.json").string();
  std::optional<TokenMeta> meta = read_token_meta(folder);
  if (meta) check_meta(*meta, options, name);
  const int64_t vocab_size = meta ? meta->vocab_size : options.vocab_size;
  BARY_CHECK(vocab_size > 0,
             "{}: there is no meta.json, so the vocabulary is not known; give --vocab_size or a tokenizer",
             folder.string());
  const TokenType type = meta ? meta->type : TokenType::uint16;
  TokenFile train(folder / "train.bin", vocab_size, type);
  if (meta) check_count(train, meta->train_tokens, name);
  std::optional<TokenFile> val;
  std::error_code error;
  if (fs::exists(folder / "val.bin", error)) {
    val.emplace(folder / "val.bin", vocab_size, type);
    if (meta) check_count(*val, meta->val_tokens, name);
  } else {
    BARY_CHECK(!meta || meta->val_tokens == 0,
               "{}: val.bin is missing, {} says it has {} tokens; make the folder again", folder.string(), name,
               meta->val_tokens);
  }
  return {std::move(train), std::move(val), std::move(meta), vocab_size};
}

}  // namespace bary
