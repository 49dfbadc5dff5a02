// SPDX-License-Identifier: Apache-2.0
// Options from a TOML file. Only this file includes toml++.
#include <toml++/toml.h>

#include <algorithm>
#include <map>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/options.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

struct TomlValue {
  std::string key, place;
  OptionValue value;
};

std::string place_of(const std::string& path, const toml::source_region& where) {
  return fmt::format("{}:{}", path, where.begin.line);
}

void collect(const toml::table& table, const std::string& path, std::vector<TomlValue>& out) {
  for (const auto& [name, node] : table) {
    std::string key(name.str());
    std::string place = place_of(path, node.source());
    if (const auto* inner = node.as_table())
      collect(*inner, path, out);
    else if (const auto* flag = node.as_boolean())
      out.push_back({key, place, flag->get()});
    else if (const auto* whole = node.as_integer())
      out.push_back({key, place, whole->get()});
    else if (const auto* real = node.as_floating_point())
      out.push_back({key, place, real->get()});
    else if (const auto* text = node.as_string())
      out.push_back({key, place, text->get()});
    else
      fail("{}: {}: lists and dates are no option values; give a number, true, false or \"text\"", place, quote(key));
  }
}

// Where a string that begins at `at` ends, its quotes included; one that is not closed ends with its line, or with the
// text where it may span lines.
size_t string_end(std::string_view text, size_t at) {
  const char quote_mark = text[at];
  const std::string_view three = text.substr(at, 3);
  const bool many_lines = three == "\"\"\"" || three == "\'\'\'";
  for (size_t i = at + (many_lines ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote_mark == '"') {
      ++i;
    } else if (many_lines ? text.substr(i, 3) == three : text[i] == quote_mark) {
      size_t end = i + (many_lines ? 3 : 1);
      // Up to two quotes may stand right before the three that close.
      for (int more = 2; many_lines && more > 0 && end < text.size() && text[end] == quote_mark; --more) ++end;
      return end;
    } else if (text[i] == '\n' && !many_lines) {
      return i;
    }
  }
  return text.size();
}

// toml++ limits how deep values nest, but not how many names a dotted key has, and frees tables by recursion: a key of
// 100,000 names would run out of stack.
void check_dotted_keys(std::string_view text, const std::string& path) {
  constexpr int kMostNames = 8;  // an option needs two
  int names = 1;
  int64_t line = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const size_t end = string_end(text, at);
      line += std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                         text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      at = end - 1;
    } else if (c == '.') {
      BARY_CHECK(++names <= kMostNames,
                 "{}:{}: a key of more than {} names; options stand at the top or under one [heading]", path, line,
                 kMostNames);
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      names = 1;
      line += c == '\n';
    }
  }
}

}  // namespace

void Options::parse_toml(const std::string& path) { parse_toml_text(read_file(path), path); }

void Options::parse_toml_text(std::string_view text, const std::string& path) {
  check_dotted_keys(text, path);
  std::vector<TomlValue> values;
  try {
    collect(toml::parse(text, path), path, values);
  } catch (const toml::parse_error& error) {
    // It quotes what it met as it came, control characters too.
    fail("{}: not TOML: {}", place_of(path, error.source()), quote(error.description(), 300));
  }
  std::map<std::string, std::string> seen;  // name -> place: two headings could hold one key
  for (auto& [key, place, value] : values) {
    std::string shown = place + ": " + quote_if_odd(key);
    Entry& entry = find(key, shown);
    auto [first, fresh] = seen.emplace(entry.name, place);
    BARY_CHECK(fresh, "{}: stands at {} too; keep one", shown, first->second);
    assign(entry, value, OptionSource::file, shown);
  }
}

}  // namespace bary
