// SPDX-License-Identifier: Apache-2.0
// Valid files and texts that the cases start from, small, and made by bary itself where it can write them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bary/text/tokenizer.h"

namespace bary::fuzz {

constexpr const char* kWheelMember = "fuzz/input.txt";

const std::vector<std::string>& sample_texts();
const std::vector<Tokenizer>& sample_tokenizers();  // bpe with and without a pattern, byte, characters

std::vector<std::string> sample_json();
std::vector<std::string> sample_toml();
std::vector<std::string> sample_args();
std::vector<std::string> sample_configs();
std::vector<std::string> sample_safetensors();     // float32 as bary writes it; all other types
std::vector<std::string> sample_tokenizer_json();  // each kind, with and without the fingerprint that notices changes
std::vector<std::string> sample_gpt2_pairs();
std::map<std::string, std::string> sample_checkpoint();  // file name -> bytes, without the manifest
std::map<std::string, std::string> sample_token_folder();
std::string sample_wheel();  // a zip of one file, not compressed

}  // namespace bary::fuzz
