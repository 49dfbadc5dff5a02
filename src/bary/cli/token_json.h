// SPDX-License-Identifier: Apache-2.0
// Tokens for a program: the bytes are given in hexadecimal too, since many tokens are no UTF-8 by themselves.
#pragma once
#include "bary/base/json.h"
#include "bary/text/tokenizer.h"

namespace bary {

Json token_json(const Tokenizer& tokenizer, int32_t id);             // {"id", "text", "bytes"}
Json merge_json(const Tokenizer& tokenizer, const BpeMerge& merge);  // {"left", "right", "makes"}, tokens

std::string hexadecimal(std::string_view bytes);

}  // namespace bary
