// SPDX-License-Identifier: Apache-2.0
// What one option accepts: from text or a file's value to the value of its type, and back to text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/base/options.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<bool> parse_bool(std::string_view text) {
  std::string word = lowered(text);  // Python's True too, as nanoGPT's command lines have it
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+') || text.empty()) return std::nullopt;
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Whole {
  bool negative = false;
  uint64_t size = 0;
};

// "5000", "5k", "1.5M", "1e6": digits [. digits] [e digits] [k|M|G], kept exact in integers; not whole is refused.
std::optional<Whole> parse_whole(std::string_view text) {
  Whole out;
  if (text.starts_with('-') || text.starts_with('+')) {
    out.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int power = 0;
  if (!text.empty()) {
    char unit = text.back();
    power = unit == 'k' || unit == 'K' ? 3 : unit == 'M' ? 6 : unit == 'G' ? 9 : 0;
    if (power) text.remove_suffix(1);
  }
  if (size_t at = text.find_first_of("eE"); at != std::string_view::npos) {
    std::string_view exponent = text.substr(at + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    int value = 0;
    auto [end, code] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
    if (code != std::errc() || end != exponent.data() + exponent.size() || value < -40 || value > 40)
      return std::nullopt;
    power += value;
    text = text.substr(0, at);
  }
  bool any = false, fraction = false;
  for (char c : text) {
    if (c == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    any = true;
    if (__builtin_mul_overflow(out.size, uint64_t{10}, &out.size)) return std::nullopt;
    if (__builtin_add_overflow(out.size, static_cast<uint64_t>(c - '0'), &out.size)) return std::nullopt;
    power -= fraction;
  }
  if (!any) return std::nullopt;
  for (; power > 0 && out.size != 0; --power) {
    if (__builtin_mul_overflow(out.size, uint64_t{10}, &out.size)) return std::nullopt;
  }
  for (; power < 0 && out.size != 0; ++power) {
    if (out.size % 10 != 0) return std::nullopt;
    out.size /= 10;
  }
  return out;
}

std::optional<Whole> whole_of(const OptionValue& raw) {
  if (const auto* text = std::get_if<std::string>(&raw)) return parse_whole(*text);
  if (const auto* big = std::get_if<uint64_t>(&raw)) return Whole{false, *big};
  if (const auto* number = std::get_if<int64_t>(&raw)) {
    return Whole{*number < 0,
                 *number < 0 ? uint64_t{0} - static_cast<uint64_t>(*number) : static_cast<uint64_t>(*number)};
  }
  if (const auto* real = std::get_if<double>(&raw)) {  // a file's 1e5, exact up to 2^53
    if (std::trunc(*real) == *real && std::abs(*real) <= 9007199254740992.0) {
      return Whole{*real < 0, static_cast<uint64_t>(std::abs(*real))};
    }
  }
  return std::nullopt;
}

std::optional<double> real_of(const OptionValue& raw) {
  if (const auto* text = std::get_if<std::string>(&raw)) return parse_real(*text);
  if (const auto* big = std::get_if<uint64_t>(&raw)) return static_cast<double>(*big);
  if (const auto* number = std::get_if<int64_t>(&raw)) return static_cast<double>(*number);
  if (const auto* real = std::get_if<double>(&raw)) return *real;
  return std::nullopt;
}

std::string shown_value(const OptionValue& raw) {
  if (const auto* text = std::get_if<std::string>(&raw)) return quote(*text);
  if (const auto* flag = std::get_if<bool>(&raw)) return *flag ? "true" : "false";
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>)
          return fmt::format("{}", value);
        else
          return "";
      },
      raw);
}

bool keeps(const Rule& rule, double value) {
  bool above = rule.above_min ? value > rule.min : value >= rule.min;
  bool below = rule.below_max ? value < rule.max : value <= rule.max;
  return above && below;
}

std::string range_text(const Rule& rule) {
  bool low = std::isfinite(rule.min), high = std::isfinite(rule.max);
  if (low && high && !rule.above_min && !rule.below_max) return fmt::format(" from {} to {}", rule.min, rule.max);
  std::string out;
  if (low) out += fmt::format(" {} {}", rule.above_min ? "above" : "of at least", rule.min);
  if (low && high) out += " and";
  if (high) out += fmt::format(" {} {}", rule.below_max ? "below" : "of at most", rule.max);
  return out;
}

std::vector<std::string> words_of(const Rule& rule) {
  std::vector<std::string> out;
  for (const auto& [word, value] : rule.words) out.push_back(word);
  return out;
}

}  // namespace

std::string Options::accepted(const Entry& entry) {
  auto words = words_of(entry.rule);
  std::string or_word = words.empty() ? "" : " or " + joined_with_or(words.data(), words.size());
  switch (entry.kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number" + range_text(entry.rule) + or_word;
    case Kind::real:
      return "a number" + range_text(entry.rule) + or_word;
    case Kind::choice:
      return joined_with_or(entry.rule.choices.data(), entry.rule.choices.size());
    case Kind::text:
      return "text";
  }
  return "";
}

OptionValue Options::convert(const Entry& entry, const OptionValue& raw, const std::string& shown) {
  const auto* text = std::get_if<std::string>(&raw);
  auto refuse = [&](std::string_view more = "") {
    fail("{}: {} came, expected {}{}", shown, shown_value(raw), accepted(entry), more);
  };
  if (entry.kind == Kind::boolean) {
    if (const auto* flag = std::get_if<bool>(&raw)) return *flag;
    std::optional<bool> flag = text ? parse_bool(*text) : std::nullopt;
    if (!flag) refuse();
    return *flag;
  }
  if (entry.kind == Kind::text || entry.kind == Kind::choice) {
    if (!text) refuse(entry.kind == Kind::text ? ", in quotes" : "");
    const auto& choices = entry.rule.choices;
    if (entry.kind == Kind::choice && std::find(choices.begin(), choices.end(), *text) == choices.end()) {
      auto guess = nearest(*text, choices);
      refuse(guess ? "; did you mean " + *guess + "?" : "");
    }
    return *text;
  }
  for (const auto& [word, value] : entry.rule.words) {
    bool meant = text ? lowered(*text) == lowered(word) : real_of(raw) == value;
    if (meant) return entry.kind == Kind::integer ? OptionValue(static_cast<int64_t>(value)) : OptionValue(value);
  }
  if (entry.kind == Kind::real) {
    std::optional<double> value = real_of(raw);
    if (!value) refuse();
    if (!std::isfinite(*value)) {
      if (!entry.rule.allow_non_finite) refuse(", finite");
      return *value;
    }
    if (!keeps(entry.rule, *value)) refuse();
    return *value;
  }
  std::optional<Whole> whole = whole_of(raw);
  if (!whole) refuse();
  uint64_t most_negative = entry.lowest < 0 ? uint64_t{0} - static_cast<uint64_t>(entry.lowest) : 0;
  bool fits = whole->negative ? whole->size <= most_negative : whole->size <= entry.highest;
  if (!fits) refuse(fmt::format(" that lies between {} and {}", entry.lowest, entry.highest));
  double size = static_cast<double>(whole->size);
  if (!keeps(entry.rule, whole->negative ? -size : size)) refuse();
  if (!whole->negative && whole->size > uint64_t{INT64_MAX}) return whole->size;
  return static_cast<int64_t>(whole->negative ? uint64_t{0} - whole->size : whole->size);
}

std::string Options::typed(const Entry& entry, const OptionValue& value) {
  if (entry.kind == Kind::integer || entry.kind == Kind::real) {
    for (const auto& [word, meaning] : entry.rule.words) {
      if (real_of(value) == meaning) return word;
    }
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return shown_value(value);
}

}  // namespace bary
