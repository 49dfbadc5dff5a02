// SPDX-License-Identifier: Apache-2.0
// Token files: the ids of a text one after another, little-endian, no header. uint16 is nanoGPT's train.bin / val.bin;
// uint32 is for vocabularies past 65,536. A folder holds train.bin, val.bin and meta.json, which says what nanoGPT
// keeps nowhere or in a pickle: id width, vocabulary, and which tokenizer made the ids.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "bary/base/file.h"
#include "bary/text/token_span.h"

namespace bary {

enum class TokenType { uint16, uint32 };

int64_t bytes_per_token(TokenType type);                  // 2 or 4
const char* name_of(TokenType type);                      // "uint16" or "uint32", as meta.json has it
TokenType token_type_for_vocabulary(int64_t vocab_size);  // the smallest that holds every id below vocab_size

// Mapped, so a file larger than the memory is fine; every id is checked against the vocabulary when it is opened.
// Throws: an empty file; a size that is no multiple of the id width; an id >= vocab_size (with its position).
class TokenFile {
 public:
  TokenFile(const std::filesystem::path& path, int64_t vocab_size, TokenType type = TokenType::uint16);
  TokenSpan tokens() const;  // valid while this file is open
  int64_t size() const { return file_.size() / bytes_per_token(type_); }
  TokenType type() const { return type_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  MappedFile file_;
  TokenType type_;
};

// Nothing is at `path` before commit(). An id outside 0 .. vocab_size-1 is refused.
class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& path, int64_t vocab_size);
  void append(std::span<const int32_t> ids);
  void commit();
  int64_t size() const { return written_; }
  TokenType type() const { return type_; }

 private:
  AtomicFile file_;
  std::string name_;
  int64_t vocab_size_;
  TokenType type_;
  int64_t written_ = 0;
};

void write_token_file(const std::filesystem::path& path, std::span<const int32_t> ids, int64_t vocab_size);

// meta.json beside the token files.
struct TokenMeta {
  int64_t vocab_size = 0;
  TokenType type = TokenType::uint16;
  std::string tokenizer;      // fingerprint of the tokenizer that made the ids; empty = not known
  std::string corpus;         // its name
  std::string corpus_sha256;  // of the bytes before tokenization
  int64_t corpus_bytes = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
};

void write_token_meta(const std::filesystem::path& folder, const TokenMeta& meta);
std::optional<TokenMeta> read_token_meta(const std::filesystem::path& folder);  // nothing where there is no meta.json

struct TokenFolderOptions {
  int64_t vocab_size = 0;      // 0: meta.json must say it
  std::string tokenizer = {};  // fingerprint of the tokenizer in use; checked where both sides know it
};

struct TokenFolder {
  TokenFile train;
  std::optional<TokenFile> val;  // val.bin may be missing
  std::optional<TokenMeta> meta;
  int64_t vocab_size;
};

// Opens train.bin and val.bin. Without meta.json (nanoGPT's own folders) ids are uint16 and vocab_size must be given.
// Throws also where meta.json and the files or the tokenizer in use disagree.
TokenFolder open_token_folder(const std::filesystem::path& folder, const TokenFolderOptions& options = {});

}  // namespace bary
