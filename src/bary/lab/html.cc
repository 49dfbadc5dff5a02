// SPDX-License-Identifier: Apache-2.0
// The page: no script, no network, one file. Readable by keyboard (links and <details>), by a screen reader (every
// picture has a name and its numbers as a table), on a phone, dark and light.
#include "bary/lab/machine.h"
#include "bary/lab/page.h"
#include "bary/report/format.h"
#include "bary/report/svg.h"

namespace bary::lab {
namespace {

constexpr const char* kStyle =
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem;"
    "background:#fff;color:#222}a{color:#0057a8}h1,h2{line-height:1.2}h2{margin-top:3rem;border-top:1px solid #ccc;"
    "padding-top:1rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums}caption{text-align:left;"
    "font-weight:bold;padding:.3rem 0}th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;"
    "vertical-align:top}td.r,th.r{text-align:right}.wide{overflow-x:auto;margin:1rem 0}.holds{color:#00633a}"
    ".fails{color:#a3001b}.open{color:#666}.verdict{font-weight:bold;white-space:nowrap}figure{margin:1rem 0}"
    "summary{cursor:pointer}a:focus-visible,summary:focus-visible,.wide:focus-visible{outline:3px solid #d55e00}"
    ".rule,.note{color:#555;font-size:.9rem}th[scope=row]{font-weight:normal}.claims "
    "th[scope=row]{font-weight:bold;min-width:4rem}.claims th+td{min-width:15rem}figure .picture{min-width:34rem}"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}a{color:#7cc0ff}th,td,h2{border-color:#333}"
    ".holds{color:#4fd19a}.fails{color:#ff8090}.open,.rule,.note{color:#aaa}}"
    "@media print{body{max-width:none}}";

struct Mark {
  const char *css, *sign;
};
Mark mark(Verdict v) {
  return v == Verdict::holds ? Mark{"holds", "✓"} : v == Verdict::fails ? Mark{"fails", "✗"} : Mark{"open", "?"};
}

std::string table_html(const std::string& caption, const Table& t) {
  std::string out = "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"" + escaped(caption) +
                    "\"><table><caption>" + escaped(caption) + "</caption><thead><tr>";
  const auto& columns = t.columns();
  auto css = [&](size_t c) { return columns[c].align == Align::right ? " class=\"r\"" : ""; };
  for (size_t c = 0; c < columns.size(); ++c)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", css(c), escaped(columns[c].name));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : t.cells()) {
    if (row.empty()) continue;
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c)
      out += fmt::format("<{0}{1}>{2}</{3}>", c ? "td" : "th scope=\"row\"", css(c), escaped(row[c]), c ? "td" : "th");
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// A picture keeps its size on a narrow screen, where it is scrolled.
std::string figure_html(const std::string& title, const std::string& svg, const Table& values) {
  return "<figure><div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"picture: " + escaped(title) + "\">" +
         svg + "</div><details><summary>the numbers: " + escaped(title) + "</summary>" +
         table_html("the numbers: " + title, values) + "</details></figure>\n";
}

Table figure_table(const Figure& f) {
  Table t({{"series", Align::left}, {f.x_label, Align::right}, {f.y_label, Align::right}});
  for (const Series& s : f.series)
    for (size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i)
      t.row({s.name, number_text(s.x[i], 6), number_text(s.y[i], 5)});
  return t;
}

Table map_table(const HeatMap& m) {
  std::vector<Column> columns{{m.row_axis, Align::left}};
  for (const std::string& l : m.column_labels) columns.push_back({l, Align::right});
  Table t(columns);
  for (size_t r = 0; r < m.row_labels.size(); ++r) {
    std::vector<std::string> row{m.row_labels[r]};
    for (size_t c = 0; c < m.column_labels.size(); ++c)
      row.push_back(number_text(m.values[r * m.column_labels.size() + c], 3));
    t.row(row);
  }
  return t;
}

std::string claims_html(const Judged& j) {
  std::string out = "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"claims of " +
                    escaped(j.experiment->name) +
                    "\"><table class=\"claims\"><caption>Claims</caption><thead><tr><th "
                    "scope=\"col\">claim</th><th scope=\"col\">says</th><th scope=\"col\">measured</th><th "
                    "scope=\"col\">published</th><th "
                    "scope=\"col\">verdict</th></tr></thead><tbody>\n";
  for (const Outcome& o : j.findings.outcomes) {
    const Claim& c = j.experiment->claim(o.id);
    const Mark m = mark(o.verdict);
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}<div class=\"rule\">holds if {}</div></td><td>{}</td><td>{}</td><td "
        "class=\"verdict "
        "{}\"><span "
        "aria-hidden=\"true\">{} </span>{}</td></tr>\n",
        escaped(o.id), escaped(c.says), escaped(c.rule), escaped(o.measured), escaped(c.published), m.css, m.sign,
        verdict_text(o.verdict));
  }
  return out + "</tbody></table></div>\n";
}

std::string section(const Judged& j) {
  std::string out = fmt::format("<section aria-labelledby=\"{0}\"><h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>\n",
                                escaped(j.experiment->name), escaped(j.experiment->question));
  if (!j.findings.outcomes.empty()) out += claims_html(j);
  for (const Figure& f : j.findings.figures)
    out += figure_html(f.title, svg_line_plot(f.series, {f.title, f.x_label, f.y_label, f.log_x, f.log_y}, false),
                       figure_table(f));
  for (const HeatMap& m : j.findings.maps)
    out += figure_html(
        m.title,
        svg_heatmap(m.values, {m.title, m.row_axis, m.column_axis, m.row_labels, m.column_labels, m.low, m.high},
                    false),
        map_table(m));
  for (const auto& [title, table] : j.findings.tables) out += table_html(title, table);
  for (const std::string& n : j.findings.notes) out += "<p class=\"note\">" + escaped(n) + "</p>\n";
  return out + "<p class=\"note\">Measured on: " + escaped(machines_text(j.machines)) + "</p></section>\n";
}

}  // namespace

std::string html_page(const std::vector<Judged>& all, const Setting& setting) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'\"><title>bary lab</title><style>" +
      std::string(kStyle) + svg_style() + "</style></head><body>\n<main><h1>The chapter, measured</h1>\n";
  out += fmt::format(
      "<p>Budget: {}. Text: {}. Every figure was measured by <code>bary lab run</code>; published figures stand beside "
      "them, cells whose figure is lost stay empty.</p>\n<nav aria-label=\"experiments\"><ul>\n",
      budget_text(setting.budget), escaped(setting.corpus));
  for (const Judged& j : all) {
    if (j.machines.empty()) continue;
    int counts[3] = {0, 0, 0};
    for (const Outcome& o : j.findings.outcomes) ++counts[static_cast<int>(o.verdict)];
    out += fmt::format("<li><a href=\"#{0}\">{0}</a>: {1} hold, {2} do not, {3} undecided</li>\n",
                       escaped(j.experiment->name), counts[0], counts[1], counts[2]);
  }
  out += "</ul></nav>\n";
  if (const std::string missing = not_measured(all); !missing.empty())
    out += "<p class=\"note\">Not measured yet: " + escaped(missing) + ".</p>\n";
  for (const Judged& j : all)
    if (!j.machines.empty()) out += section(j);
  return out + "</main></body></html>\n";
}

}  // namespace bary::lab
