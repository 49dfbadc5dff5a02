// SPDX-License-Identifier: Apache-2.0
// The tokenizer that a command line names.
#pragma once
#include <filesystem>
#include <string>

#include "bary/text/tokenizer.h"

namespace bary {

inline constexpr const char* kTokenizerHelp =
    "file, folder that holds tokenizer.json, or byte (256 tokens, nothing to learn)";

// A file, a folder (of a run or a checkpoint) with tokenizer.json in it, or "byte".
Tokenizer load_tokenizer(const std::string& source);

// Refuses to write `file` into a checkpoint, or as the tokenizer.json of a run, whose model would lose its own.
void refuse_to_replace_a_models(const char* command, const std::filesystem::path& file);

}  // namespace bary
