// SPDX-License-Identifier: Apache-2.0
#include "bary/text/byte_map.h"

#include <array>

#include "bary/text/utf8.h"

namespace bary {
namespace {

struct ByteMap {
  std::array<uint16_t, 256> printable{};
  std::array<int16_t, 0x144> byte{};
  constexpr ByteMap() {
    byte.fill(-1);
    uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      printable[b] = itself ? static_cast<uint16_t>(b) : next++;
      byte[printable[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr ByteMap kMap;

}  // namespace

uint32_t printable_of_byte(uint8_t byte) { return kMap.printable[byte]; }

std::string bytes_to_printable(std::string_view bytes) {
  std::string text;
  for (char c : bytes) append_utf8(text, kMap.printable[static_cast<uint8_t>(c)]);
  return text;
}

std::optional<std::string> printable_to_bytes(std::string_view text) {
  std::string bytes;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    if (c.code >= kMap.byte.size() || kMap.byte[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kMap.byte[c.code]);
    p += c.size;
  }
  return bytes;
}

}  // namespace bary
