// SPDX-License-Identifier: Apache-2.0
#include "bary/text/utf8.h"

namespace bary {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Appends the text of bytes to out and returns how many bytes were used: all but a valid beginning at the very end.
size_t append_replaced(std::string& out, std::string_view bytes) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  while (p < end) {
    const Utf8Prefix prefix = utf8_prefix(p, end);
    if (prefix.need > 0 && prefix.have == prefix.need) {
      out.append(p, static_cast<size_t>(prefix.need));
      p += prefix.need;
    } else if (prefix.need > 0 && p + prefix.have == end) {
      break;
    } else {
      out += kReplacement;
      p += prefix.have > 0 ? prefix.have : 1;
    }
  }
  return static_cast<size_t>(p - bytes.data());
}

}  // namespace

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

size_t utf8_error(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Utf8Char c = decode_utf8(p, end);
    if (c.code == kBadByte) return static_cast<size_t>(p - text.data());
    p += c.size;
  }
  return text.size();
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_replaced(out, bytes) < bytes.size()) out += kReplacement;
  return out;
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string out;
  held_ += bytes;
  held_.erase(0, append_replaced(out, held_));
  return out;
}

std::string Utf8Stream::flush() {
  std::string out = held_.empty() ? std::string() : std::string(kReplacement);
  held_.clear();
  return out;
}

}  // namespace bary
