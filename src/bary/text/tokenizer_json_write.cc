// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "bary/base/json.h"
#include "bary/text/byte_map.h"
#include "bary/text/tokenizer.h"
#include "bary/text/tokenizer_json.h"

namespace bary {
namespace {

std::string json_text(std::string_view text) { return dump_json(Json(text), -1); }

// {"a": 0, "b": 1}, one entry a line, in the order given.
class Lines {
 public:
  Lines(std::string& out, std::string indent) : out_(out), indent_(std::move(indent)) {}
  void add(const std::string& line) {
    out_ += (first_ ? "\n" : ",\n") + indent_ + line;
    first_ = false;
  }

 private:
  std::string& out_;
  std::string indent_;
  bool first_ = true;
};

std::string spelling(const TokenizerParts& parts, int32_t id) {
  const std::string_view bytes = parts.tokens[id];
  return parts.kind == TokenizerKind::chars ? std::string(bytes) : bytes_to_printable(bytes);
}

// Readers number added tokens on from the vocabulary and ignore what the file says. Where that gives other ids, the
// vocabulary must list them too.
bool numbered_on(const TokenizerParts& parts) {
  int32_t next = parts.tokens.size();
  for (int32_t id = 0; id < parts.tokens.size(); ++id)
    if (parts.tokens[id].empty()) return false;
  for (const SpecialToken& special : parts.specials)
    if (special.id != next++) return false;
  return true;
}

void write_added_tokens(std::string& out, const std::vector<SpecialToken>& specials) {
  out += "  \"added_tokens\": [";
  Lines lines(out, "    ");
  for (const SpecialToken& special : specials)
    lines.add(
        fmt::format("{{\"id\": {}, \"content\": {}, \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                    "\"normalized\": false, \"special\": {}}}",
                    special.id, json_text(special.text), special.control));
  out += specials.empty() ? "],\n" : "\n  ],\n";
}

void write_steps(std::string& out, const TokenizerParts& parts) {
  out += "  \"normalizer\": null,\n";
  if (parts.kind == TokenizerKind::chars) {
    out += R"(  "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", )"
           R"("invert": false},)"
           "\n  \"post_processor\": null,\n  \"decoder\": {\"type\": \"Fuse\"},\n";
    return;
  }
  out += fmt::format(R"(  "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, )"
                     R"("use_regex": {}}},)",
                     parts.pattern == Pattern::gpt2);
  out += "\n  \"post_processor\": null,\n";
  out += R"(  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},)";
  out += "\n";
}

void write_vocabulary(std::string& out, const TokenizerParts& parts) {
  out += "    \"vocab\": {";
  Lines lines(out, "      ");
  for (int32_t id = 0; id < parts.tokens.size(); ++id)
    if (!parts.tokens[id].empty()) lines.add(fmt::format("{}: {}", json_text(spelling(parts, id)), id));
  if (!numbered_on(parts))
    for (const SpecialToken& special : parts.specials)
      lines.add(fmt::format("{}: {}", json_text(special.text), special.id));
  out += "\n    }";
}

void write_model(std::string& out, const TokenizerParts& parts) {
  out += "  \"model\": {\n";
  if (parts.kind == TokenizerKind::chars) {
    // Without an <unk> in the vocabulary a character that is missing is an error there as it is here.
    out += "    \"type\": \"WordLevel\",\n    \"unk_token\": \"<unk>\",\n";
    write_vocabulary(out, parts);
    return;
  }
  out +=
      "    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n    \"continuing_subword_prefix\": "
      "null,\n"
      "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n";
  out += fmt::format("    \"ignore_merges\": {},\n", parts.whole_first);
  write_vocabulary(out, parts);
  out += ",\n    \"merges\": [";
  Lines lines(out, "      ");
  for (const BpeMerge& merge : parts.merges)
    lines.add(fmt::format("[{}, {}]", json_text(spelling(parts, merge.left)), json_text(spelling(parts, merge.right))));
  out += parts.merges.empty() ? "]" : "\n    ]";
}

// Within the model: there readers pass over what they do not know, which they do not at the top.
void write_own_facts(std::string& out, const TokenizerParts& parts, const std::string& fingerprint) {
  out += ",\n    \"bary\": {";
  Lines lines(out, "      ");
  lines.add(fmt::format("\"kind\": {}", json_text(tokenizer_kind_name(parts.kind))));
  lines.add(fmt::format("\"pattern\": {}", json_text(pattern_name(parts.pattern))));
  const TrainingFacts& facts = parts.training;
  if (!facts.ties.empty()) lines.add(fmt::format("\"ties\": {}", json_text(facts.ties)));
  if (!facts.corpus_sha256.empty()) lines.add(fmt::format("\"corpus_sha256\": {}", json_text(facts.corpus_sha256)));
  if (!facts.counts.empty()) lines.add("\"counts\": " + dump_json(Json(facts.counts), -1));
  lines.add(fmt::format("\"fingerprint\": {}", json_text(fingerprint)));
  out += "\n    }\n";
}

}  // namespace

// The special tokens come sorted by id, as Tokenizer keeps them.
std::string tokenizer_to_json(const TokenizerParts& parts, const std::string& fingerprint) {
  std::string out = "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n";
  write_added_tokens(out, parts.specials);
  write_steps(out, parts);
  write_model(out, parts);
  write_own_facts(out, parts, fingerprint);
  out += "  }\n}\n";
  return out;
}

}  // namespace bary
