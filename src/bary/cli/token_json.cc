// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/token_json.h"

#include <fmt/format.h>

namespace bary {

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Json token_json(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = tokenizer.bytes_of(id);
  return {{"id", id}, {"text", std::string(bytes)}, {"bytes", hexadecimal(bytes)}};
}

Json merge_json(const Tokenizer& tokenizer, const BpeMerge& merge) {
  return {{"left", token_json(tokenizer, merge.left)},
          {"right", token_json(tokenizer, merge.right)},
          {"makes", token_json(tokenizer, merge.result)}};
}

}  // namespace bary
