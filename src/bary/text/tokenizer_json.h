// SPDX-License-Identifier: Apache-2.0
// tokenizer.json, the file format of Hugging Face's tokenizers. What is written here is loaded there and gives the same
// ids (encode with add_special_tokens=False there), and files written there are read here as far as bary knows what
// they ask for; anything else is refused by name, never ignored.
//
// Read: model BPE (merges as ["a","b"] or "a b"; a pair given twice: the last counts) on bytes spelled as in
// byte_map.h, pre-tokenizer ByteLevel, with its own pattern, with a Split before it, or with none; WordLevel over
// single characters. Not influencing ids, and so not looked into: post_processor, truncation, padding. bary's own facts
// (kind, tie rule, count of each merge, corpus hash, fingerprint) stand in the member "bary", which other readers pass
// over.
#pragma once
#include <string>
#include <string_view>

namespace bary {

struct TokenizerParts;

std::string tokenizer_to_json(const TokenizerParts& parts, const std::string& fingerprint);

// `fingerprint`, if not null, receives what the file claims, or nothing.
TokenizerParts tokenizer_parts_from_json(std::string_view json, const std::string& what, std::string* fingerprint);

// GPT-2's older pair of files: vocab.json (spelling -> id) and merges.txt ("left right" by rank, under a #version
// line). A token of vocab.json that no merge makes and that is no byte, such as <|endoftext|>, is a special token.
TokenizerParts tokenizer_parts_from_gpt2_files(std::string_view vocab_json, std::string_view merges_text,
                                               const std::string& what);

}  // namespace bary
