// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/quote.h"
#include "bary/text/byte_map.h"
#include "bary/text/tokenizer.h"
#include "bary/text/tokenizer_json.h"

namespace bary {
namespace {

constexpr size_t kLongestAdded = 1024;  // bytes; the search for added tokens costs as many comparisons a byte of text
constexpr size_t kMostPairs = 10'000;
constexpr int64_t kMostIds = 1 << 22;  // checked before anything is sized by an id of the file
constexpr std::string_view kEachCharacter = R"([\s\S])";

using Vocabulary = std::unordered_map<std::string, int32_t>;  // spelling -> id

// The member, or null where it is missing: files of older versions leave some out.
const Json& optional_member(const Json& object, const char* key) {
  static const Json null;
  const auto at = object.find(key);
  return at == object.end() ? null : *at;
}

bool flag(const Json& object, const char* key, bool otherwise, const std::string& what) {
  return object.contains(key) ? json_bool(object, key, what) : otherwise;
}

std::string type_of(const Json& object, const std::string& what) {
  BARY_CHECK(object.is_object(), "{}: {} is not an object; this is no tokenizer.json", what,
             quote(dump_json(object, -1)));
  return json_string(object, "type", what);
}

class Reader {
 public:
  // A vocabulary may skip ids, but one far above what a file of so many bytes can list would ask for memory out of all
  // proportion to it.
  Reader(std::string what, size_t file_bytes, TokenizerParts& parts)
      : what_(std::move(what)), most_ids_(std::min(kMostIds, static_cast<int64_t>(file_bytes))), parts_(parts) {}

  void read(const Json& file) {
    BARY_CHECK(file.is_object(), "{}: not a JSON object; this is no tokenizer.json", what_);
    const Json& model = json_member(file, "model", what_);
    BARY_CHECK(model.is_object(), "{}: \"model\" is not an object; this is no tokenizer.json", what_);
    const Json& normalizer = optional_member(file, "normalizer");
    if (!normalizer.is_null()) unsupported("normalizer", type_of(normalizer, what_), "only files without one");
    const std::string type = model.contains("type") ? json_string(model, "type", what_) : "BPE";
    if (type == "WordLevel")
      read_characters(file);
    else if (type == "BPE")
      read_bpe(file, model);
    else
      unsupported("model", type, "BPE on bytes, or WordLevel over characters");
    read_vocabulary(model);
    read_added_tokens(optional_member(file, "added_tokens"));
    fill_tokens();
    if (type == "BPE") read_merges(json_member(model, "merges", what_));
    find_kind(type);
  }

  void read_own_facts(const Json& own, std::string* fingerprint) {
    if (own.is_null()) return;
    BARY_CHECK(own.is_object(), "{}: \"bary\" is not an object; the file was not written by bary", what_);
    const std::string kind = own.contains("kind") ? json_string(own, "kind", what_) : "";
    if (kind == "bpe" && parts_.kind == TokenizerKind::byte) parts_.kind = TokenizerKind::bpe;
    if (own.contains("ties")) parts_.training.ties = json_string(own, "ties", what_);
    if (own.contains("corpus_sha256")) parts_.training.corpus_sha256 = json_string(own, "corpus_sha256", what_);
    if (own.contains("fingerprint") && fingerprint != nullptr) *fingerprint = json_string(own, "fingerprint", what_);
    for (const Json& count : optional_member(own, "counts")) {
      BARY_CHECK(count.is_number_integer(), "{}: the count {} is no integer; the file is damaged", what_,
                 quote(dump_json(count, -1)));
      parts_.training.counts.push_back(count.get<int64_t>());
    }
  }

 private:
  [[noreturn]] void unsupported(const char* part, const std::string& name, const char* supported) const {
    fail("{}: the {} {} is not supported: {}; convert the tokenizer, or use another one", what_, part, quote(name),
         supported);
  }

  void read_bpe(const Json& file, const Json& model) {
    const Json& dropout = optional_member(model, "dropout");
    if (!dropout.is_null() && dropout != 0) unsupported("model option", "dropout", "only 0 or null");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const Json& affix = optional_member(model, key); !affix.is_null() && affix != "")
        unsupported("model option", key, "only null or an empty text");
    if (flag(model, "byte_fallback", false, what_)) unsupported("model option", "byte_fallback", "only false");
    parts_.whole_first = flag(model, "ignore_merges", false, what_);
    const Json& splitter = optional_member(file, "pre_tokenizer");
    if (splitter.is_null()) unsupported("pre_tokenizer", "null", "ByteLevel, alone or after a Split");
    read_pre_tokenizer(splitter);
    const Json& decoder = optional_member(file, "decoder");
    if (!decoder.is_null() && type_of(decoder, what_) != "ByteLevel")
      unsupported("decoder", type_of(decoder, what_), "ByteLevel or null");
  }

  void read_pre_tokenizer(const Json& json) {
    Json steps = Json::array({json});
    if (type_of(json, what_) == "Sequence") steps = json_member(json, "pretokenizers", what_);
    bool bytes = false, cut = false;
    for (const Json& step : steps) {
      const std::string type = type_of(step, what_);
      if (type == "Split" && !cut && !bytes) {
        parts_.pattern = read_split(step), cut = true;
      } else if (type == "ByteLevel" && !bytes) {
        bytes = true;
        if (json_bool(step, "add_prefix_space", what_))
          unsupported("ByteLevel option", "add_prefix_space", "only false");
        const bool own_regex = flag(step, "use_regex", true, what_);
        if (own_regex && cut) unsupported("pre_tokenizer", "Split and then ByteLevel with use_regex", "one of the two");
        if (own_regex) parts_.pattern = Pattern::gpt2;
      } else {
        unsupported("pre_tokenizer", type, "ByteLevel, alone or after one Split");
      }
    }
    if (!bytes) unsupported("pre_tokenizer", "without ByteLevel", "ByteLevel, alone or after one Split");
  }

  Pattern read_split(const Json& split) const {
    const Json& pattern = json_member(split, "pattern", what_);
    if (!pattern.contains("Regex")) unsupported("Split pattern", dump_json(pattern, -1), "a Regex that bary knows");
    const std::string regex = json_string(pattern, "Regex", what_);
    const std::optional<Pattern> known = pattern_of_regex(regex);
    if (!known) unsupported("Split pattern", regex, "the pattern of GPT-2");
    if (json_string(split, "behavior", what_) != "Isolated" || flag(split, "invert", false, what_))
      unsupported("Split behavior", json_string(split, "behavior", what_), "Isolated, not inverted");
    return *known;
  }

  void read_characters(const Json& file) {
    const Json& split = optional_member(file, "pre_tokenizer");
    const bool each = split.is_object() && split.value("type", "") == "Split" && split.contains("pattern") &&
                      split["pattern"].contains("Regex") && split["pattern"]["Regex"] == kEachCharacter &&
                      split.value("behavior", "") == "Isolated";
    if (!each) unsupported("model", "WordLevel", "only over single characters, as bary writes it");
    parts_.kind = TokenizerKind::chars;
  }

  void read_vocabulary(const Json& model) {
    const Json& vocabulary = json_member(model, "vocab", what_);
    BARY_CHECK(vocabulary.is_object(), "{}: \"vocab\" is not an object of spellings and ids", what_);
    for (const auto& [text, id] : vocabulary.items()) {
      BARY_CHECK(id.is_number_integer() && id >= 0 && id < most_ids_,
                 "{}: the token {} has the id {}, expected an integer between 0 and {}; the file is damaged", what_,
                 quote(text), quote(dump_json(id, -1)), most_ids_ - 1);
      spelled_.emplace(text, id.get<int32_t>());
    }
  }

  // An added token has the id that the vocabulary gives it, else the next free one: a file that says otherwise means
  // something that other readers do not do.
  void read_added_tokens(const Json& list) {
    const auto entries = static_cast<int64_t>(spelled_.size());
    int64_t next = entries;
    for (const Json& added : list) {
      SpecialToken token{json_string(added, "content", what_), 0, flag(added, "special", false, what_)};
      const int64_t id = json_integer(added, "id", what_);
      for (const char* key : {"single_word", "lstrip", "rstrip"})
        if (flag(added, key, false, what_)) unsupported("added token option", key, "only false");
      BARY_CHECK(token.text.size() <= kLongestAdded, "{}: the added token {} has {} bytes, at most {} are read", what_,
                 quote(token.text), token.text.size(), kLongestAdded);
      (flag(added, "normalized", !token.control, what_) ? late_ : early_).push_back(token.text);
      const auto listed = spelled_.find(token.text);
      const int64_t expected = listed != spelled_.end() ? listed->second : next;
      BARY_CHECK(
          id == expected && id < kMostIds,
          "{}: the added token {} has the id {}, but readers of this format give it {}; list it in model.vocab with "
          "its id",
          what_, quote(token.text), id, expected);
      next = std::max(entries, std::max(next, id + 1));
      token.id = static_cast<int32_t>(id);
      if (listed != spelled_.end()) spelled_.erase(listed);
      parts_.specials.push_back(std::move(token));
    }
    check_apart();
  }

  // Readers of this format look for tokens with "normalized": false in the whole text first, and for the others in what
  // is left. That is one search for all of them, unless two can share letters of a text.
  void check_apart() const {
    auto meet = [](const std::string& a, const std::string& b) {  // b inside a, or beginning in it
      for (size_t at = 0; at < a.size(); ++at)
        if (const size_t n = std::min(b.size(), a.size() - at); a.compare(at, n, b, 0, n) == 0) return true;
      return false;
    };
    BARY_CHECK(late_.size() * early_.size() <= kMostPairs,
               "{}: has {} added tokens with \"normalized\": true and {} "
               "without, too many to compare; give all of them the same",
               what_, late_.size(), early_.size());
    for (const std::string& a : late_)
      for (const std::string& b : early_)
        if (meet(a, b) || meet(b, a))
          unsupported("added tokens that meet", a + " and " + b, "those of one \"normalized\"");
  }

  void fill_tokens() {
    std::vector<std::string> bytes;
    for (const auto& [text, id] : spelled_) {
      const auto at = static_cast<size_t>(id);
      if (at >= bytes.size()) bytes.resize(at + 1);
      BARY_CHECK(bytes[at].empty(), "{}: the id {} has two tokens, {} is one of them; the file is damaged", what_, id,
                 quote(text));
      const std::optional<std::string> raw = parts_.kind == TokenizerKind::chars ? text : printable_to_bytes(text);
      BARY_CHECK(raw.has_value() && !raw->empty(),
                 "{}: the token {} (id {}) is not spelled in GPT-2's byte characters; this is no byte-level vocabulary",
                 what_, quote(text), id);
      bytes[at] = *raw;
    }
    for (const std::string& token : bytes) parts_.tokens.add(token);
  }

  int32_t id_of(const std::string& text, size_t merge) const {
    const auto at = spelled_.find(text);
    BARY_CHECK(at != spelled_.end(),
               "{}: merge {} needs the token {}, which is not in the vocabulary; the file is damaged", what_, merge,
               quote(text));
    return at->second;
  }

  void read_merges(const Json& list) {
    BARY_CHECK(list.is_array(), "{}: \"merges\" is not a list", what_);
    std::vector<BpeMerge> all;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto [left, right] = parts_of_merge(list[i], i);
      all.push_back({id_of(left, i), id_of(right, i), id_of(left + right, i)});
    }
    // Of equal pairs the last counts, as in Hugging Face's reader, which keeps ranks in a map.
    std::unordered_set<uint64_t> seen;
    for (auto merge = all.rbegin(); merge != all.rend(); ++merge)
      if (seen.insert(static_cast<uint64_t>(merge->left) << 32 | static_cast<uint32_t>(merge->right)).second)
        parts_.merges.push_back(*merge);
    std::reverse(parts_.merges.begin(), parts_.merges.end());
  }

  std::pair<std::string, std::string> parts_of_merge(const Json& merge, size_t number) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t blank = text.find(' ');
    BARY_CHECK(blank != std::string::npos && text.find(' ', blank + 1) == std::string::npos,
               "{}: merge {} is {}, expected [\"left\", \"right\"] or \"left right\"; the file is damaged", what_,
               number, quote(dump_json(merge, -1)));
    return {text.substr(0, blank), text.substr(blank + 1)};
  }

  void find_kind(const std::string& type) {
    if (type != "BPE") return;
    bool plain =
        parts_.merges.empty() && parts_.pattern == Pattern::none && !parts_.whole_first && parts_.tokens.size() == 256;
    for (int32_t id = 0; plain && id < 256; ++id) plain = parts_.tokens[id] == std::string(1, static_cast<char>(id));
    parts_.kind = plain ? TokenizerKind::byte : TokenizerKind::bpe;
  }

  std::string what_;
  std::vector<std::string> early_, late_;  // added tokens with "normalized": false, and true
  int64_t most_ids_;
  TokenizerParts& parts_;
  Vocabulary spelled_;
};

// Lines end at a line feed only: the spelling of some bytes looks like a line end to others. A carriage return before
// the line feed is the file's, not the merge's.
std::vector<std::string> merge_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line(text.substr(at, end - at));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const bool header = at == 0 && line.starts_with("#version");
    if (!header && !line.empty()) lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

}  // namespace

TokenizerParts tokenizer_parts_from_json(std::string_view json, const std::string& what, std::string* fingerprint) {
  const Json file = parse_json(json, what);
  TokenizerParts parts;
  Reader reader(what, json.size(), parts);
  try {
    reader.read(file);
    reader.read_own_facts(optional_member(file["model"], "bary"), fingerprint);
  } catch (const Json::exception& error) {
    fail("{}: not the structure of a tokenizer.json: {}; the file is damaged", what, error.what());
  }
  return parts;
}

TokenizerParts tokenizer_parts_from_gpt2_files(std::string_view vocab_json, std::string_view merges_text,
                                               const std::string& what) {
  Json file = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
  Json& model = file["model"];
  model["vocab"] = parse_json(vocab_json, what);
  model["merges"] = merge_lines(merges_text);
  std::unordered_set<std::string> made;
  for (const Json& merge : model["merges"]) {
    std::string text = merge.get<std::string>();
    std::erase(text, ' ');
    made.insert(std::move(text));
  }
  Json added = Json::array();
  for (const auto& [text, id] : model["vocab"].items()) {
    const std::optional<std::string> bytes = printable_to_bytes(text);
    if ((!bytes || bytes->size() != 1) && !made.contains(text))
      added.push_back({{"id", id}, {"content", text}, {"special", true}});
  }
  file["added_tokens"] = std::move(added);
  TokenizerParts parts;
  Reader(what, vocab_json.size(), parts).read(file);
  return parts;
}

}  // namespace bary
