// SPDX-License-Identifier: Apache-2.0
// What came out, for people: as text for a terminal, as Markdown with SVG pictures, as one HTML page that needs no
// network, and as CSV.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "bary/lab/results.h"

namespace bary::lab {

struct Judged {
  const Experiment* experiment;
  Findings findings;
  nlohmann::json machines;
};
// Judges the rows that are there.
Judged judge(const Experiment& e, const Results& results);

struct TextStyle {
  bool unicode = true;
  int columns = 100;
};
std::string claims_text(const Judged& j);                            // measured | published | verdict
std::string findings_text(const Judged& j, const TextStyle& style);  // claims, tables, plots, notes

std::string not_measured(const std::vector<Judged>& all);  // names of those without any row, "" if there is none

// Experiments without any row are only named in these.
std::string html_page(const std::vector<Judged>& all, const Setting& setting);
struct MarkdownReport {
  std::string text;
  std::map<std::string, std::string> pictures;  // file name -> SVG, as the text links them
};
MarkdownReport markdown_report(const std::vector<Judged>& all, const Setting& setting, const std::string& folder);
std::string csv_report(const std::vector<Judged>& all);  // a claim a line, with its rule

}  // namespace bary::lab
