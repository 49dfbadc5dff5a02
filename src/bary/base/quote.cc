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

// Appends the character at the start of `text`, made safe, and says how many bytes that was.
size_t append_safe(std::string& out, std::string_view text) {
  const size_t length = character_length(text);
  const auto byte = static_cast<unsigned char>(text[0]);
  // C1 control characters (C2 80 .. C2 9F) start escape sequences in some terminals.
  const bool control =
      byte < 0x20 || byte == 0x7F || (byte == 0xC2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xA0);
  const size_t n = std::max<size_t>(length, 1);
  if (length != 0 && !control) {
    out.append(text, 0, n);
    return n;
  }
  for (size_t i = 0; i < n; ++i) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
  return n;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\n' || text[i] == '\t') {
      out += text[i++];
    } else {
      i += append_safe(out, text.substr(i));
    }
  }
  return out;
}

std::string quote(std::string_view text, size_t longest) {
  std::string out = "\"";
  size_t i = 0;
  while (i < text.size() && i + std::max<size_t>(character_length(text.substr(i)), 1) <= longest) {
    const char c = text[i];
    if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t", ++i;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    i += append_safe(out, text.substr(i));
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
