// SPDX-License-Identifier: Apache-2.0
// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Bytes that are not UTF-8 are
// never an error here: they are reported one by one and the caller decides.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace bary {

constexpr uint32_t kBadByte = 0xFFFFFFFF;  // the "code" of a byte that begins no valid sequence

struct Utf8Char {
  uint32_t code;
  int size;  // bytes; 1 for a bad byte
};

// How many bytes at p continue a sequence that is valid so far (the lead byte included), and how many it needs in all.
// {0, 0} where p begins nothing valid. have == need: a whole character.
struct Utf8Prefix {
  int have;
  int need;
};

inline Utf8Prefix utf8_prefix(const char* p, const char* end) {
  const auto* s = reinterpret_cast<const uint8_t*>(p);
  const int64_t left = end - p;
  if (left <= 0) return {0, 0};
  const uint8_t lead = s[0];
  if (lead < 0x80) return {1, 1};
  const int need = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0) == 0xE0 ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (need == 0) return {0, 0};
  // The second byte's range is what excludes overlong forms, surrogates and codes past U+10FFFF.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (left < 2 || s[1] < low || s[1] > high) return {1, need};
  int have = 2;
  while (have < need && have < left && (s[have] & 0xC0) == 0x80) ++have;
  return {have, need};
}

// The character at p < end.
inline Utf8Char decode_utf8(const char* p, const char* end) {
  const auto* s = reinterpret_cast<const uint8_t*>(p);
  if (s[0] < 0x80) return {s[0], 1};
  const Utf8Prefix prefix = utf8_prefix(p, end);
  if (prefix.need == 0 || prefix.have < prefix.need) return {kBadByte, 1};
  if (prefix.need == 2) return {(s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu), 2};
  if (prefix.need == 3) return {(s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu), 3};
  return {(s[0] & 0x07u) << 18 | (s[1] & 0x3Fu) << 12 | (s[2] & 0x3Fu) << 6 | (s[3] & 0x3Fu), 4};
}

// code must be at most U+10FFFF.
void append_utf8(std::string& out, uint32_t code);

// Offset of the first byte that is not UTF-8, or text.size().
size_t utf8_error(std::string_view text);

// bytes with each maximal run of a broken sequence replaced by one U+FFFD (the practice the Unicode standard
// recommends, and what Python's errors="replace" does).
std::string replace_invalid_utf8(std::string_view bytes);

// Replaces invalid bytes as they stream in. A character cut in two is held back until it is whole, so no call ever
// returns part of one; an invalid byte is replaced at once, never held.
// The joined results of push ... push, flush equal replace_invalid_utf8 of the joined input, wherever it was cut.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string flush();  // what was held back, replaced; the stream is then as new

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace bary
