// SPDX-License-Identifier: Apache-2.0
// GPT-2's printable spelling of bytes in vocabulary files (bytes_to_unicode): the bytes 33-126, 161-172 and 174-255
// stand for the character of the same number, the other 68 in increasing order for U+0100 .. U+0143. So a blank is
// written as U+0120 and a line feed as U+010A.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bary {

uint32_t printable_of_byte(uint8_t byte);
std::string bytes_to_printable(std::string_view bytes);  // as UTF-8

// Nothing where a character is not one of the 256, or the text is not UTF-8.
std::optional<std::string> printable_to_bytes(std::string_view text);

}  // namespace bary
