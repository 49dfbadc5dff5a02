// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bary/base/options.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

constexpr size_t kColumn = 30;  // where explanations start
constexpr size_t kWidth = 110;

// Words of `text` in lines of at most kWidth columns, all but the first indented to kColumn. ASCII is assumed.
void append_wrapped(std::string& out, const std::string& text) {
  size_t column = kColumn;
  bool first = true;
  for (size_t from = 0; from < text.size();) {
    size_t to = std::min(text.find(' ', from), text.size());
    std::string word = text.substr(from, to - from);
    if (!first && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(kColumn, ' ');
      column = kColumn;
      first = true;
    }
    if (!first) out += ' ', ++column;
    out += word;
    column += word.size();
    first = false;
    from = to + 1;
  }
  out += '\n';
}

}  // namespace

std::string Options::value_name(const Entry& entry) {
  if (!entry.rule.value_name.empty()) return entry.rule.value_name;
  std::string words;
  for (const auto& [word, value] : entry.rule.words) words += "|" + word;
  switch (entry.kind) {
    case Kind::boolean:
      return "";
    case Kind::integer:
      return "N" + words;
    case Kind::real:
      return "X" + words;
    case Kind::text:
      return "TEXT";
    case Kind::choice: {
      std::string all;
      for (const auto& choice : entry.rule.choices) all += (all.empty() ? "" : "|") + choice;
      return all;
    }
  }
  return "";
}

void Options::append_help(std::string& out, const Entry& entry) {
  std::string value = value_name(entry);
  std::string left = "  --" + std::string(entry.kind == Kind::boolean ? "[no-]" : "") + entry.name;
  if (!value.empty()) left += " " + value;
  out += left;
  if (left.size() + 2 <= kColumn)
    out += std::string(kColumn - left.size(), ' ');
  else
    out += "\n" + std::string(kColumn, ' ');
  std::string initial = typed(entry, entry.initial);
  if (entry.kind == Kind::text) initial = initial.empty() ? "" : quote(initial);
  if (entry.kind == Kind::boolean) initial = initial == "true" ? "on" : "off";
  append_wrapped(out, entry.help + (initial.empty() ? "" : " (default " + initial + ")"));
}

std::string Options::help() const {
  std::vector<std::string> headings;  // in order of first use: an option added later joins its group
  for (const auto& entry : entries_) {
    if (std::find(headings.begin(), headings.end(), entry.heading) == headings.end()) headings.push_back(entry.heading);
  }
  std::string out;
  for (const auto& heading : headings) {
    if (!out.empty()) out += "\n";
    out += (heading.empty() ? "Options" : heading) + ":\n";
    for (const auto& entry : entries_) {
      if (entry.heading == heading) append_help(out, entry);
    }
  }
  return out;
}

}  // namespace bary
