// SPDX-License-Identifier: Apache-2.0
#include "bary/base/quote.h"

#include <fmt/format.h>

#include <algorithm>

namespace bary {
namespace {

// Length of the valid UTF-8 character at the start of `text`, 0 where there is none (overlong forms and surrogates
// too).
size_t character_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  bool bad = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF0 && byte(1) < 0x90) ||
             (lead == 0xF4 && byte(1) > 0x8F);
  return bad ? 0 : length;
}

}  // namespace

std::string quote(std::string_view text, size_t longest) {
  std::string out = "\"";
  size_t i = 0;
  while (i < text.size()) {
    size_t length = character_length(text.substr(i));
    if (i + std::max<size_t>(length, 1) > longest) break;
    auto byte = static_cast<unsigned char>(text[i]);
    // C1 control characters (C2 80 .. C2 9F) start escape sequences in some terminals.
    bool control =
        byte < 0x20 || byte == 0x7F || (byte == 0xC2 && length == 2 && static_cast<unsigned char>(text[i + 1]) < 0xA0);
    if (length == 0 || (control && length == 1)) {
      out += byte == '\n' ? std::string("\\n") : byte == '\t' ? std::string("\\t") : fmt::format("\\x{:02x}", byte);
      i += 1;
    } else if (control) {
      out += fmt::format("\\x{:02x}\\x{:02x}", byte, static_cast<unsigned char>(text[i + 1]));
      i += 2;
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out.append(text, i, length);
      i += length;
    }
  }
  out += '"';
  if (i < text.size()) out += fmt::format(" (and {} bytes more)", text.size() - i);
  return out;
}

std::string quote_if_odd(std::string_view name) {
  bool plain = !name.empty() && name.size() <= 60;
  for (char c : name) {
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-' || c == '.');
  }
  return plain ? std::string(name) : quote(name);
}

std::string joined_with_or(const std::string* first, size_t count) {
  if (count == 0) return "nothing";
  std::string out = first[0];
  for (size_t i = 1; i < count; ++i) out += (i + 1 == count ? " or " : ", ") + first[i];
  return out;
}

}  // namespace bary
