// SPDX-License-Identifier: Apache-2.0
// Options from a TOML file. Only this file includes toml++.
#include <toml++/toml.h>

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

}  // namespace

void Options::parse_toml(const std::string& path) { parse_toml_text(read_file(path), path); }

void Options::parse_toml_text(std::string_view text, const std::string& path) {
  std::vector<TomlValue> values;
  try {
    collect(toml::parse(text, path), path, values);
  } catch (const toml::parse_error& error) {
    fail("{}: not TOML: {}", place_of(path, error.source()), error.description());
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
