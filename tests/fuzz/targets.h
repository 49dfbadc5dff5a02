// SPDX-License-Identifier: Apache-2.0
// One entry for each reader of files or of people's input. The bytes may be anything. A target returns whether they
// were accepted, and throws anything but bary::Error where a promise is broken: what was accepted must be usable, what
// is refused must be refused with a bary::Error whose message is short and free of control characters.
//
// They are made for libFuzzer too; its program is these lines, linked with targets.cc and the library:
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
//     bary::fuzz::fuzz_safetensors({reinterpret_cast<const char*>(data), size});
//     return 0;
//   }
#pragma once
#include <span>
#include <stdexcept>
#include <string_view>

namespace bary::fuzz {

struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

bool fuzz_json(std::string_view bytes);
bool fuzz_options_toml(std::string_view bytes);
bool fuzz_options_args(std::string_view bytes);  // one argument a line
bool fuzz_model_config(std::string_view bytes);  // config.json
bool fuzz_safetensors(std::string_view bytes);
// The first byte chooses the file (its remainder by 6: config, state, weights, optimizer, tokenizer, manifest), its bit
// 0x80 whether the manifest is made to agree; the others are the content.
bool fuzz_run_folder(std::string_view bytes);
bool fuzz_tokenizer_json(std::string_view bytes);
bool fuzz_tokenizer_gpt2(std::string_view bytes);  // vocab.json, a NUL byte, merges.txt
// The first byte chooses the file (its remainder by 3: train.bin, val.bin, meta.json); the others are the content.
bool fuzz_token_folder(std::string_view bytes);
bool fuzz_text(std::string_view bytes);   // pieces, ids and UTF-8 of any text; never refused
bool fuzz_wheel(std::string_view bytes);  // needs python3

struct Target {
  const char* name;
  bool (*run)(std::string_view bytes);
};
std::span<const Target> all_targets();

}  // namespace bary::fuzz
