// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <string_view>

#include "bary/lab/machine.h"
#include "bary/lab/page.h"
#include "bary/report/svg.h"

namespace bary::lab {
namespace {

// A text's own tokens and samples must not turn into marks: a backslash makes any sign itself. An underscore inside a
// word is none.
std::string plain(const std::string& text) {
  std::string out;
  auto word = [&](size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0); };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool inside = c == '_' && i > 0 && word(i - 1) && word(i + 1);
    if (std::string_view("\\|*_`<[").find(c) != std::string_view::npos && !inside) out += '\\';
    out += c;
  }
  return out;
}

std::string table_markdown(const Table& t) {
  std::string out = "|", line = "|";
  for (const Column& c : t.columns())
    out += " " + plain(c.name) + " |", line += c.align == Align::right ? "---:|" : "---|";
  out += "\n" + line + "\n";
  for (const auto& row : t.cells()) {
    if (row.empty()) continue;
    out += "|";
    for (const std::string& text : row) out += " " + plain(text) + " |";
    out += "\n";
  }
  return out + "\n";
}

}  // namespace

MarkdownReport markdown_report(const std::vector<Judged>& all, const Setting& setting, const std::string& folder) {
  MarkdownReport out;
  std::string& text = out.text;
  text = fmt::format(
      "# The chapter, measured\n\nBudget: {}. Text: {}. Made by `bary lab report`; cells whose published figure is "
      "lost stay "
      "empty.\n\n",
      budget_text(setting.budget), plain(setting.corpus));
  if (const std::string missing = not_measured(all); !missing.empty()) text += "Not measured yet: " + missing + ".\n\n";
  for (const Judged& j : all) {
    if (j.machines.empty()) continue;
    const std::string& name = j.experiment->name;
    text += fmt::format("## {}\n{}\n\n", name, j.experiment->question);
    Table claims({{"claim", Align::left},
                  {"says", Align::left},
                  {"holds if", Align::left},
                  {"measured", Align::left},
                  {"published", Align::left},
                  {"verdict", Align::left}});
    for (const Outcome& o : j.findings.outcomes) {
      const Claim& c = j.experiment->claim(o.id);
      claims.row({o.id, c.says, c.rule, o.measured, c.published, verdict_text(o.verdict)});
    }
    if (claims.rows()) text += table_markdown(claims);
    int number = 0;
    auto picture = [&](const std::string& title, std::string svg) {
      const std::string file = fmt::format("{}-{}.svg", name, ++number);
      text += fmt::format("![{}: {}]({}/{})\n\n", name, plain(title), folder, file);
      out.pictures[file] = std::move(svg);
    };
    for (const Figure& f : j.findings.figures)
      picture(f.title, svg_line_plot(f.series, {f.title, f.x_label, f.y_label, f.log_x, f.log_y}, true));
    for (const HeatMap& m : j.findings.maps)
      picture(m.title,
              svg_heatmap(m.values, {m.title, m.row_axis, m.column_axis, m.row_labels, m.column_labels, m.low, m.high},
                          true));
    for (const auto& [title, table] : j.findings.tables) text += plain(title) + "\n\n" + table_markdown(table);
    for (const std::string& n : j.findings.notes) text += plain(n) + "\n\n";
    text += "Measured on: " + machines_text(j.machines) + "\n\n";
  }
  return out;
}

}  // namespace bary::lab
