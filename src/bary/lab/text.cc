// SPDX-License-Identifier: Apache-2.0
// Findings as text, and as CSV.
#include <algorithm>

#include "bary/lab/page.h"
#include "bary/report/format.h"

namespace bary::lab {

static void tell_stopped(const Experiment& e, const Rows& rows, const Plan& plan, Findings& f) {
  for (const Unit& u : e.units(plan))
    if (rows.stopped(u.key))
      f.notes.push_back(fmt::format("{} {}; it counts against every claim it takes part in.", u.key,
                                    rows.all().at(u.key)["stopped"].get<std::string>()));
}

// A reader must see that a verdict speaks of fewer rows than its rule does.
static std::string what_is_missing(const Experiment& e, const Rows& rows, const Plan& plan) {
  const std::vector<Unit> units = e.units(plan);
  const auto there = std::count_if(units.begin(), units.end(), [&](const Unit& u) { return rows.run(u.key); });
  std::string text;
  if (const auto all = std::ssize(units); there < all)
    text = fmt::format("{} of {} rows are there; the verdicts speak of these. ", there, all);
  const bool seeded = std::any_of(units.begin(), units.end(), [](const Unit& u) { return u.key.ends_with("/1"); });
  constexpr int64_t kUsual = 3;
  if (seeded && plan.budget == Budget::chapter && plan.seeds < kUsual)
    text += fmt::format("{} of the usual {} seeds.", plan.seeds, kUsual);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// Every claim has its line, in the order of the claims; pictures and tables without anything in them have none.
static void complete(const Experiment& e, Findings& f) {
  std::vector<Outcome> all;
  for (const Outcome& o : f.outcomes) e.claim(o.id);  // every outcome belongs to a claim
  for (const Claim& c : e.claims) {
    const auto said =
        std::find_if(f.outcomes.begin(), f.outcomes.end(), [&](const Outcome& o) { return o.id == c.id; });
    all.push_back(said == f.outcomes.end() ? Outcome{c.id, "", Verdict::undecided} : *said);
  }
  f.outcomes = std::move(all);
  auto empty = [](const Figure& p) {
    return std::all_of(p.series.begin(), p.series.end(), [](const Series& s) { return s.x.empty() || s.y.empty(); });
  };
  std::erase_if(f.figures, empty);
  std::erase_if(f.tables, [](const auto& titled) { return titled.second.rows() == 0; });
}

Judged judge(const Experiment& e, const Results& results) {
  const Setting& s = results.setting();
  const Plan plan{s.budget, results.seeds(e), s.own_text()};
  const Rows rows = results.rows(e);
  Judged j{&e, rows.all().empty() ? Findings() : e.judge(rows, plan), results.machines(e)};
  if (results.outdated(e))
    j.findings.notes.push_back("Its rows are of an older recipe and are not judged: bary lab run " + e.name +
                               " measures it anew.");
  if (rows.all().empty()) return j;
  if (std::string missing = what_is_missing(e, rows, plan); !missing.empty())
    j.findings.notes.insert(j.findings.notes.begin(), missing);
  tell_stopped(e, rows, plan, j.findings);
  complete(e, j.findings);
  return j;
}

std::string not_measured(const std::vector<Judged>& all) {
  std::string names;
  for (const Judged& j : all)
    if (j.machines.empty()) names += (names.empty() ? "" : ", ") + j.experiment->name;
  return names;
}

std::string claims_text(const Judged& j) {
  Table t({{"claim", Align::left}, {"measured", Align::left}, {"published", Align::left}, {"verdict", Align::left}});
  for (const Outcome& o : j.findings.outcomes)
    t.row({o.id, o.measured, j.experiment->claim(o.id).published, verdict_text(o.verdict)});
  return t.text();
}

std::string findings_text(const Judged& j, const TextStyle& style) {
  std::string out = fmt::format("\n{}: {}\n\n", j.experiment->name, j.experiment->question);
  for (const auto& [title, table] : j.findings.tables) out += title + "\n" + table.text() + "\n";
  for (const Figure& f : j.findings.figures) {
    PlotOptions o;
    o.title = f.title + " (" + f.y_label + ")";
    o.x_label = f.x_label;
    o.width = std::min(style.columns, 100);
    o.log_x = f.log_x, o.log_y = f.log_y;
    o.unicode = style.unicode;
    out += line_plot(f.series, o) + "\n";
  }
  if (!j.findings.outcomes.empty()) out += claims_text(j);
  for (const std::string& note : j.findings.notes) out += "note: " + note + "\n";
  return out;
}

namespace {

std::string csv_cell(const std::string& text) {  // RFC 4180
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_report(const std::vector<Judged>& all) {
  std::string out = "experiment,claim,says,holds if,measured,published,verdict\n";
  for (const Judged& j : all) {
    for (const Outcome& o : j.findings.outcomes) {
      const Claim& c = j.experiment->claim(o.id);
      for (const std::string& cell : {j.experiment->name, o.id, c.says, c.rule, o.measured, c.published})
        out += csv_cell(cell) + ",";
      out += verdict_text(o.verdict) + "\n";
    }
  }
  return out;
}

}  // namespace bary::lab
