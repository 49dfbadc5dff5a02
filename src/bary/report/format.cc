// SPDX-License-Identifier: Apache-2.0
#include "bary/report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bary {
namespace {

// Three digits that count: 1.24, 20.7, 950.
std::string three_digits(double value) {
  double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

// Steps to the unit in which the rounded value stays below 1000.
int unit_of(double size, int last) {
  int unit = 0;
  for (double limit = 999.5; size >= limit && unit < last; limit *= 1000) ++unit;
  return unit;
}

struct Character {
  char32_t code = 0;
  size_t length = 1;
  bool valid = false;
};

Character character_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return {};
  char32_t code = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  return {code, length, true};
}

bool within(char32_t code, char32_t low, char32_t high) { return code >= low && code <= high; }

// The large blocks only: a table's columns, not typography.
int width_of(const Character& character) {
  if (!character.valid) return 1;
  char32_t c = character.code;
  bool mark = within(c, 0x300, 0x36F) || within(c, 0x1AB0, 0x1AFF) || within(c, 0x1DC0, 0x1DFF) ||
              within(c, 0x20D0, 0x20FF) || within(c, 0x200B, 0x200F) || within(c, 0xFE00, 0xFE0F) ||
              within(c, 0xFE20, 0xFE2F);
  if (mark) return 0;
  bool wide = within(c, 0x1100, 0x115F) || within(c, 0x2E80, 0xA4CF) || within(c, 0xAC00, 0xD7A3) ||
              within(c, 0xF900, 0xFAFF) || within(c, 0xFE30, 0xFE6F) || within(c, 0xFF00, 0xFF60) ||
              within(c, 0xFFE0, 0xFFE6) || within(c, 0x1F300, 0x1F64F) || within(c, 0x1F680, 0x1F6FF) ||
              within(c, 0x1F900, 0x1F9FF) || within(c, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string short_count(double value) {
  if (!std::isfinite(value)) return number_text(value);
  int unit = unit_of(std::abs(value), 4);
  if (unit == 0)
    return std::abs(value) == std::floor(std::abs(value)) ? fmt::format("{:.0f}", value) : three_digits(value);
  return three_digits(value / std::pow(1000.0, unit)) + "kMGT"[unit - 1];
}

std::string bytes_text(int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double size = std::abs(static_cast<double>(bytes));
  int unit = unit_of(size, 5);
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{}{} {}", bytes < 0 ? "-" : "", three_digits(size / std::pow(1000.0, unit)), kUnits[unit]);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 9.995) return fmt::format("{:.2f}s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f}s", seconds);
  if (seconds > 1e15) return "?";
  auto whole = static_cast<int64_t>(std::llround(seconds));
  int64_t minutes = (whole + 30) / 60, hours = (whole + 1800) / 3600;  // to the nearest of the smaller unit shown
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (minutes < 24 * 60) return fmt::format("{}h {:02}m", minutes / 60, minutes % 60);
  return fmt::format("{}d {:02}h", hours / 24, hours % 24);
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return "?";
  return fmt::format("{:.1f}%", 100 * share);
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{:.{}g}", value, digits);
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    Character character = character_at(text, at);
    width += width_of(character);
    at += character.length;
  }
  return width;
}

std::string fitted(std::string_view text, int columns, bool unicode) {
  if (display_width(text) <= columns) return std::string(text);
  std::string_view dots = unicode ? "\u2026" : "...";
  int room = columns - display_width(dots);
  if (room < 0) return std::string(static_cast<size_t>(std::max(columns, 0)), '.');
  size_t at = 0;
  for (int width = 0; at < text.size();) {
    Character character = character_at(text, at);
    width += width_of(character);
    if (width > room) break;
    at += character.length;
  }
  return std::string(text.substr(0, at)) + std::string(dots);
}

}  // namespace bary
