// SPDX-License-Identifier: Apache-2.0
// Text to ids and back. Three kinds: byte-level BPE (any bytes, merges learned by bpe_train.h), bytes (256 ids, nothing
// to learn), and characters (nanoGPT's: the distinct code points of a text, sorted).
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/bpe_coder.h"
#include "bary/text/bpe_train.h"
#include "bary/text/special_tokens.h"
#include "bary/text/token_store.h"
#include "bary/text/utf8.h"

namespace bary {

enum class TokenizerKind : uint8_t { bpe, byte, chars };
std::string_view tokenizer_kind_name(TokenizerKind kind);

// Where a vocabulary comes from; kept in its file, without influence on any id.
struct TrainingFacts {
  std::string ties;             // name of the tie rule
  std::vector<int64_t> counts;  // for each merge
  std::string corpus_sha256;    // of the text it was learned on
};

// All that a tokenizer is made of; files are read into this and written from it.
struct TokenizerParts {
  TokenizerKind kind = TokenizerKind::byte;
  Pattern pattern = Pattern::none;
  TokenStore tokens;             // ordinary tokens by id; empty at the id of a special token or of none
  std::vector<BpeMerge> merges;  // in order of rank
  bool whole_first = false;      // a piece that is a token is that token ("ignore_merges")
  std::vector<SpecialToken> specials;
  TrainingFacts training;
};

// A value: copies share one immutable vocabulary, and encode from several threads at once.
class Tokenizer {
 public:
  Tokenizer();  // bytes, without special tokens
  // Refused: a byte without a token (named), two tokens with equal bytes, a merge that does not fit its tokens, a
  // special token whose id or spelling another token has.
  explicit Tokenizer(TokenizerParts parts);

  static Tokenizer bytes(const std::vector<std::string>& specials = {});
  // Refused: text that is not UTF-8.
  static Tokenizer characters(std::string_view text, const std::vector<std::string>& specials = {});
  static Tokenizer bpe(const BpeTraining& training, const BpeOptions& options, std::string corpus_sha256 = {});

  // Ids of the text; lossless for bpe and byte, whatever the bytes. Throws SpecialTextError where control text is met
  // that `policy` does not allow, Error where a characters tokenizer lacks a character (named, with its place).
  std::vector<int32_t> encode(std::string_view text, const SpecialPolicy& policy = {}) const;
  int64_t count(std::string_view text, const SpecialPolicy& policy = {}) const;  // encode(text).size(), ids not kept

  // The exact bytes. Throws Error for an id that no token has.
  std::string decode(std::span<const int32_t> ids) const;
  std::string decode_text(std::span<const int32_t> ids) const;  // as UTF-8, broken sequences replaced by U+FFFD
  std::string_view bytes_of(int32_t id) const;                  // of a special token: its text

  TokenizerKind kind() const { return parts().kind; }
  Pattern pattern() const { return parts().pattern; }
  int vocab_size() const;             // the highest id + 1
  bool has(int32_t id) const;         // a token: a file may skip ids
  std::vector<int32_t> gaps() const;  // the ids below vocab_size() that no token has
  const std::vector<SpecialToken>& specials() const { return parts().specials; }
  std::optional<int32_t> special_id(std::string_view text) const;
  bool is_special(int32_t id) const;
  // What a text begins with where nothing is given: <|endoftext|>, <|begin_of_text|>, <|bos|> or <s>, if it has one.
  std::optional<int32_t> start_token() const;

  // The merges of one piece in the order in which they happen (for showing; bpe only).
  std::vector<BpeMergeStep> explain(std::string_view piece) const;

  // Of everything that decides about ids: two tokenizers with one fingerprint code all texts alike.
  uint64_t fingerprint() const;
  std::string fingerprint_hex() const;  // 16 digits

  // tokenizer.json as Hugging Face's tokenizers reads it; see tokenizer_json.h.
  std::string to_json() const;
  static Tokenizer from_json(std::string_view json, const std::string& what = "tokenizer.json");
  void save(const std::filesystem::path& file) const;
  static Tokenizer load(const std::filesystem::path& file);

  const TokenizerParts& parts() const;

 private:
  struct Data;
  void encode_into(std::string_view text, const SpecialPolicy& policy, IdSink& sink) const;
  void encode_plain(std::string_view text, size_t offset, IdSink& sink) const;
  void encode_characters(std::string_view text, size_t offset, IdSink& sink) const;

  std::shared_ptr<const Data> data_;
};

// Decodes ids as they come, never part of a character: what may still become one is held back (at most three bytes).
//   StreamDecoder out(tokenizer);
//   for (int32_t id : ids) print(out.push(id));
//   print(out.flush());
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  std::string push(int32_t id) { return stream_.push(tokenizer_.bytes_of(id)); }
  std::string flush() { return stream_.flush(); }

 private:
  Tokenizer tokenizer_;
  Utf8Stream stream_;
};

}  // namespace bary
