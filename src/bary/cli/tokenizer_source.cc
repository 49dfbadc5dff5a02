// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/tokenizer_source.h"

#include "bary/base/error.h"

namespace bary {
namespace fs = std::filesystem;

Tokenizer load_tokenizer(const std::string& source) {
  std::error_code ignored;
  if (source == "byte" && !fs::exists(source, ignored)) return Tokenizer::bytes();
  fs::path path = source;
  if (fs::is_directory(path, ignored)) {
    for (const char* inside : {"tokenizer.json", "best/tokenizer.json", "last/tokenizer.json"}) {
      if (fs::exists(path / inside, ignored)) return Tokenizer::load(path / inside);
    }
    fail("{}: no tokenizer.json in this folder; name a run, a checkpoint or a tokenizer's file", source);
  }
  BARY_CHECK(fs::exists(path, ignored),
             "tokenizer: {} does not exist; learn one with `bary tokenizer train`, or name another with --tokenizer",
             source);
  return Tokenizer::load(path);
}

void refuse_to_replace_a_models(const char* command, const fs::path& file) {
  std::error_code ignored;
  const fs::path folder = file.parent_path();
  const bool checkpoint = fs::exists(folder / "manifest.json", ignored),
             run = file.filename() == "tokenizer.json" && fs::exists(folder / "run.json", ignored);
  BARY_CHECK(!checkpoint && !run,
             "{}: {} holds a model, whose tokenizer {} would take the place of; name another folder", command,
             folder.string(), file.string());
}

}  // namespace bary
