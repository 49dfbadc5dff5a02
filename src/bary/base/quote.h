// SPDX-License-Identifier: Apache-2.0
// Text from outside, made safe to stand inside an error message.
#pragma once
#include <string>
#include <string_view>

namespace bary {

// "text" in double quotes: control characters and invalid UTF-8 bytes as \xNN, cut after `longest` bytes with the count
// of what is missing, so that neither an escape sequence nor a megabyte reaches the terminal.
std::string quote(std::string_view text, size_t longest = 60);

// Lines as they are, but for what a terminal would act on: control characters (not line feeds and tabs) and invalid
// UTF-8 as \xNN.
std::string printable(std::string_view text);

// A name of letters, digits, '_', '-' and '.' as it is, anything else quoted.
std::string quote_if_odd(std::string_view name);

// "a, b or c"; the empty list is "nothing".
std::string joined_with_or(const std::string* first, size_t count);

}  // namespace bary
