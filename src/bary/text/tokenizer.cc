// SPDX-License-Identifier: Apache-2.0
#include "bary/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/parallel.h"
#include "bary/base/quote.h"
#include "bary/base/sha256.h"
#include "bary/text/byte_map.h"
#include "bary/text/tokenizer_json.h"

namespace bary {
namespace {

constexpr size_t kParallelText = 8 << 20;  // bytes from which a text is cut into parts for the threads
constexpr size_t kPart = 4 << 20;
constexpr int32_t kMostIds = 1 << 24;  // past any vocabulary; a larger id is a damaged file

std::string hex(uint64_t value, int digits) { return fmt::format("{:0{}x}", value, digits); }

void check_special(const TokenizerParts& parts, const SpecialToken& special, const TokenIndex& index) {
  BARY_CHECK(special.id >= 0 && special.id < kMostIds,
             "tokenizer: the special token {} has the id {}; ids lie between 0 and {}", quote(special.text), special.id,
             kMostIds - 1);
  BARY_CHECK(special.id >= parts.tokens.size() || parts.tokens[special.id].empty(),
             "tokenizer: the special token {} has the id {} of the token {}; give it an id of its own",
             quote(special.text), special.id, quote(parts.tokens[special.id]));
  BARY_CHECK(utf8_error(special.text) == special.text.size(),
             "tokenizer: the special token {} is not UTF-8, which files can't hold; choose another text",
             quote(special.text));
  // Files know tokens by their spelling only.
  const std::optional<std::string> ordinary =
      parts.kind == TokenizerKind::chars ? special.text : printable_to_bytes(special.text);
  BARY_CHECK(!ordinary || index.find(parts.tokens, *ordinary) < 0,
             "tokenizer: the special token {} is spelled like the ordinary token {}; choose another text",
             quote(special.text), ordinary ? index.find(parts.tokens, *ordinary) : 0);
}

std::array<int32_t, 256> find_bytes(const TokenizerParts& parts, const TokenIndex& index) {
  std::array<int32_t, 256> ids;
  for (size_t b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    ids[b] = index.find(parts.tokens, std::string_view(&byte, 1));
    BARY_CHECK(ids[b] >= 0,
               "tokenizer: the byte 0x{} has no token, so not every text could be encoded; add it to the vocabulary",
               hex(b, 2));
  }
  return ids;
}

void check_merge(const TokenizerParts& parts, const BpeMerge& merge, size_t rank) {
  for (const int32_t id : {merge.left, merge.right, merge.result})
    BARY_CHECK(id >= 0 && id < parts.tokens.size() && !parts.tokens[id].empty(),
               "tokenizer: merge {} names the id {}, which is no ordinary token; check the merges", rank, id);
  const std::string_view left = parts.tokens[merge.left], result = parts.tokens[merge.result];
  const bool fits = result.size() == left.size() + parts.tokens[merge.right].size() && result.starts_with(left) &&
                    result.ends_with(parts.tokens[merge.right]);
  BARY_CHECK(fits, "tokenizer: merge {} of {} and {} makes {}; check the merges", rank, quote(left),
             quote(parts.tokens[merge.right]), quote(result));
}

void append_specials(TokenizerParts& parts, const std::vector<std::string>& specials) {
  for (const std::string& text : specials)
    parts.specials.push_back({text, parts.tokens.size() + static_cast<int32_t>(parts.specials.size())});
}

// By id, so that equal vocabularies are equal in every way however they were put together.
TokenizerParts sorted(TokenizerParts parts) {
  std::stable_sort(parts.specials.begin(), parts.specials.end(),
                   [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  return parts;
}

}  // namespace

struct Tokenizer::Data {
  TokenizerParts parts;
  int vocab_size = 0;
  SpecialMatcher matcher;
  std::vector<std::pair<int32_t, size_t>> special_of;  // by id: its place in parts.specials, the first where several
  std::optional<BpeCoder> coder;
  std::vector<std::pair<uint32_t, int32_t>> characters;  // code point and id, sorted
  std::array<int32_t, 128> ascii;                        // the same for the first of them; -1: no token
  uint64_t fingerprint = 0;

  explicit Data(TokenizerParts given)
      : parts(sorted(std::move(given))), matcher(std::span<const SpecialToken>(parts.specials)) {
    const TokenIndex index = index_tokens();
    vocab_size = parts.tokens.size();
    for (size_t i = 0; i < parts.specials.size(); ++i) {
      check_special(parts, parts.specials[i], index);
      special_of.emplace_back(parts.specials[i].id, i);
      vocab_size = std::max(vocab_size, parts.specials[i].id + 1);
    }
    std::sort(special_of.begin(), special_of.end());
    if (parts.kind == TokenizerKind::chars) {
      index_characters();
    } else {
      for (size_t i = 0; i < parts.merges.size(); ++i) check_merge(parts, parts.merges[i], i);
      coder.emplace(parts.tokens, find_bytes(parts, index), parts.merges, parts.whole_first);
    }
    fingerprint = hash_all();
  }

  TokenIndex index_tokens() const {
    TokenIndex index(static_cast<size_t>(parts.tokens.size()));
    for (int32_t id = 0; id < parts.tokens.size(); ++id)
      BARY_CHECK(parts.tokens[id].empty() || index.insert(parts.tokens, id),
                 "tokenizer: the ids {} and {} are both the token {}; keep one",
                 index.find(parts.tokens, parts.tokens[id]), id, quote(parts.tokens[id]));
    return index;
  }

  void index_characters() {
    BARY_CHECK(parts.merges.empty(), "tokenizer: a characters tokenizer has {} merges; it must have none",
               parts.merges.size());
    ascii.fill(-1);
    for (int32_t id = 0; id < parts.tokens.size(); ++id) {
      const std::string_view bytes = parts.tokens[id];
      if (bytes.empty()) continue;
      const Utf8Char c = decode_utf8(bytes.data(), bytes.data() + bytes.size());
      BARY_CHECK(c.code != kBadByte && static_cast<size_t>(c.size) == bytes.size(),
                 "tokenizer: the token {} of a characters tokenizer is {}, not one character", id, quote(bytes));
      characters.emplace_back(c.code, id);
      if (c.code < 128) ascii[c.code] = id;
    }
    std::sort(characters.begin(), characters.end());
  }

  int32_t id_of_character(uint32_t code) const {
    if (code < 128) return ascii[code];
    const auto at = std::lower_bound(characters.begin(), characters.end(), std::pair<uint32_t, int32_t>(code, 0));
    return at != characters.end() && at->first == code ? at->second : -1;
  }

  bool ordinary(int32_t id) const { return id >= 0 && id < parts.tokens.size() && !parts.tokens[id].empty(); }
  const SpecialToken* special(int32_t id) const {
    const auto at = std::lower_bound(special_of.begin(), special_of.end(), std::pair<int32_t, size_t>(id, 0));
    return at != special_of.end() && at->first == id ? &parts.specials[at->second] : nullptr;
  }

  uint64_t hash_all() const {
    Sha256 hash;
    const auto add = [&](std::string_view text) { hash.update(fmt::format("{}:", text.size())).update(text); };
    add(tokenizer_kind_name(parts.kind));
    add(pattern_name(parts.pattern));
    add(parts.whole_first ? "whole first" : "");
    for (int32_t id = 0; id < parts.tokens.size(); ++id) add(parts.tokens[id]);
    add("merges");
    for (const BpeMerge& merge : parts.merges) add(fmt::format("{} {} {}", merge.left, merge.right, merge.result));
    add("specials");
    for (const SpecialToken& token : parts.specials)
      add(token.text), add(fmt::format("{} {}", token.id, token.control));
    uint64_t value = 0;
    const auto digest = hash.digest();
    for (size_t i = 0; i < 8; ++i) value = value << 8 | digest[i];
    return value;
  }
};

std::string_view tokenizer_kind_name(TokenizerKind kind) {
  return kind == TokenizerKind::bpe ? "bpe" : kind == TokenizerKind::byte ? "byte" : "chars";
}

Tokenizer::Tokenizer() : Tokenizer(bytes()) {}

Tokenizer::Tokenizer(TokenizerParts parts) : data_(std::make_shared<const Data>(std::move(parts))) {}

const TokenizerParts& Tokenizer::parts() const { return data_->parts; }

Tokenizer Tokenizer::bytes(const std::vector<std::string>& specials) {
  TokenizerParts parts;
  for (int b = 0; b < 256; ++b) parts.tokens.add(std::string(1, static_cast<char>(b)));
  append_specials(parts, specials);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::characters(std::string_view text, const std::vector<std::string>& specials) {
  const size_t bad = utf8_error(text);
  BARY_CHECK(bad == text.size(),
             "characters tokenizer: the byte 0x{} at byte {} of the text is not UTF-8; use a byte or bpe tokenizer",
             hex(static_cast<uint8_t>(text[bad]), 2), bad);
  std::set<uint32_t> codes;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    codes.insert(c.code);
    p += c.size;
  }
  TokenizerParts parts;
  parts.kind = TokenizerKind::chars;
  for (const uint32_t code : codes) {
    std::string bytes;
    append_utf8(bytes, code);
    parts.tokens.add(bytes);
  }
  append_specials(parts, specials);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::bpe(const BpeTraining& training, const BpeOptions& options, std::string corpus_sha256) {
  TokenizerParts parts;
  parts.kind = TokenizerKind::bpe;
  parts.pattern = options.pattern;
  for (int b = 0; b < 256; ++b) parts.tokens.add(std::string(1, static_cast<char>(b)));
  for (const BpeStep& step : training.steps) {
    parts.merges.push_back({step.left, step.right, parts.tokens.size()});
    parts.tokens.add(std::string(parts.tokens[step.left]) + std::string(parts.tokens[step.right]));
    parts.training.counts.push_back(step.count);
  }
  parts.training.ties = tie_rule_name(options.ties);
  parts.training.corpus_sha256 = std::move(corpus_sha256);
  append_specials(parts, options.specials);
  return Tokenizer(std::move(parts));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const SpecialPolicy& policy) const {
  IdSink sink(true);
  encode_into(text, policy, sink);
  return sink.take();
}

int64_t Tokenizer::count(std::string_view text, const SpecialPolicy& policy) const {
  IdSink sink(false);
  encode_into(text, policy, sink);
  return static_cast<int64_t>(sink.size());
}

void Tokenizer::encode_into(std::string_view text, const SpecialPolicy& policy, IdSink& sink) const {
  const std::vector<SpecialToken>& specials = data_->parts.specials;
  for (const std::string& name : policy.allowed)
    BARY_CHECK(special_id(name).has_value(),
               "encode: {} is allowed but is no special token of this tokenizer; it has {}", quote(name),
               specials.size());
  std::vector<bool> allowed(specials.size()), looked_for(specials.size());
  for (size_t i = 0; i < specials.size(); ++i) {
    const bool named =
        std::find(policy.allowed.begin(), policy.allowed.end(), specials[i].text) != policy.allowed.end();
    allowed[i] = !specials[i].control || policy.all || named;
    looked_for[i] = allowed[i] || policy.others == SpecialPolicy::Others::error;
  }
  size_t at = 0;
  while (const auto match = data_->matcher.find(text, at, looked_for)) {
    if (!allowed[match->index]) throw SpecialTextError(specials[match->index].text, match->begin);
    encode_plain(text.substr(at, match->begin - at), at, sink);
    sink.put(specials[match->index].id);
    at = match->end;
  }
  encode_plain(text.substr(at), at, sink);
}

// `offset`: where this text stands in the whole, for messages.
void Tokenizer::encode_plain(std::string_view text, size_t offset, IdSink& sink) const {
  if (kind() == TokenizerKind::chars) return encode_characters(text, offset, sink);
  if (text.size() < kParallelText || threads() == 1)
    return data_->coder->encode(data_->parts.tokens, pattern(), text, sink);
  // Pieces are coded one by one, so cutting where a piece begins in any case changes nothing.
  std::vector<size_t> cuts = {0};
  while (cuts.back() < text.size())
    cuts.push_back(safe_cut(pattern(), text, std::min(cuts.back() + kPart, text.size())));
  std::vector<IdSink> parts(cuts.size() - 1, IdSink(sink.keeps()));
  parallel_tasks(static_cast<int64_t>(parts.size()), [&](int64_t i, int) {
    const auto part = static_cast<size_t>(i);
    data_->coder->encode(data_->parts.tokens, pattern(), text.substr(cuts[part], cuts[part + 1] - cuts[part]),
                         parts[part]);
  });
  for (IdSink& part : parts) sink.put(std::move(part));
}

void Tokenizer::encode_characters(std::string_view text, size_t offset, IdSink& sink) const {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* p = begin; p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    const size_t place = offset + static_cast<size_t>(p - begin);
    BARY_CHECK(c.code != kBadByte, "encode: the byte 0x{} at byte {} is not UTF-8; use a byte or bpe tokenizer",
               hex(static_cast<uint8_t>(*p), 2), place);
    const int32_t id = data_->id_of_character(c.code);
    BARY_CHECK(
        id >= 0,
        "encode: the character {} (U+{:04X}) at byte {} is not among the {} characters of this tokenizer; remove "
        "it, or make the tokenizer from a text that has it",
        quote(std::string_view(p, static_cast<size_t>(c.size))), c.code, place, data_->characters.size());
    sink.put(id);
    p += c.size;
  }
}

std::string_view Tokenizer::bytes_of(int32_t id) const {
  if (data_->ordinary(id)) return data_->parts.tokens[id];
  const SpecialToken* const special = data_->special(id);
  BARY_CHECK(special != nullptr, "decode: no token has the id {}; this tokenizer has the ids 0 to {}{}", id,
             vocab_size() - 1, id >= 0 && id < vocab_size() ? " and skips some of them" : "");
  return special->text;
}

bool Tokenizer::has(int32_t id) const { return data_->ordinary(id) || is_special(id); }

std::vector<int32_t> Tokenizer::gaps() const {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < vocab_size(); ++id)
    if (!has(id)) ids.push_back(id);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += bytes_of(id);
  return bytes;
}

std::string Tokenizer::decode_text(std::span<const int32_t> ids) const { return replace_invalid_utf8(decode(ids)); }

int Tokenizer::vocab_size() const { return data_->vocab_size; }

std::optional<int32_t> Tokenizer::special_id(std::string_view text) const {
  for (const SpecialToken& special : specials())
    if (special.text == text) return special.id;
  return std::nullopt;
}

bool Tokenizer::is_special(int32_t id) const { return data_->special(id) != nullptr; }

std::optional<int32_t> Tokenizer::start_token() const {
  for (std::string_view text : {"<|endoftext|>", "<|begin_of_text|>", "<|bos|>", "<s>"})
    if (const auto id = special_id(text)) return id;
  return std::nullopt;
}

std::vector<BpeMergeStep> Tokenizer::explain(std::string_view piece) const {
  return data_->coder ? data_->coder->explain(piece) : std::vector<BpeMergeStep>();
}

uint64_t Tokenizer::fingerprint() const { return data_->fingerprint; }
std::string Tokenizer::fingerprint_hex() const { return hex(data_->fingerprint, 16); }

std::string Tokenizer::to_json() const { return tokenizer_to_json(parts(), fingerprint_hex()); }

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& what) {
  std::string expected;
  Tokenizer tokenizer(tokenizer_parts_from_json(json, what, &expected));
  BARY_CHECK(expected.empty() || expected == tokenizer.fingerprint_hex(),
             "{}: its content has the fingerprint {} but it says {}; the file was changed or damaged: get it again, or "
             "remove its \"bary\" object if the change was meant",
             what, tokenizer.fingerprint_hex(), quote(expected));
  return tokenizer;
}

void Tokenizer::save(const std::filesystem::path& file) const { write_file_atomic(file, to_json()); }

Tokenizer Tokenizer::load(const std::filesystem::path& file) { return from_json(read_file(file), file.string()); }

}  // namespace bary
