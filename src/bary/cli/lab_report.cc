// SPDX-License-Identifier: Apache-2.0
// bary lab report: what was measured, as a page, as Markdown and as CSV.
#include <fmt/format.h>

#include "bary/base/file.h"
#include "bary/cli/lab_commands.h"
#include "bary/cli/lab_request.h"
#include "bary/lab/page.h"

namespace bary {
namespace {

int run_report(std::span<const std::string> args, Io& io) {
  LabRequest r;
  Options o = r.report_options();
  BARY_CHECK(o.parse_args(args).empty(), "lab report: takes options only; see --help");
  const std::filesystem::path folder = r.folder();
  const lab::Results results = lab::Results::load(folder);
  const lab::Budget measured = results.setting().budget;
  BARY_CHECK(
      !o.asked("budget") || r.budget == measured,
      "lab report: --budget {} was asked for, and the rows in {} are of --budget {}; leave --budget out, or name "
      "another --out_dir",
      lab::budget_text(r.budget), folder.string(), lab::budget_text(measured));
  std::vector<lab::Judged> all;
  for (const lab::Experiment& e : lab::experiments()) all.push_back(lab::judge(e, results));
  write_file_atomic(folder / "lab.html", lab::html_page(all, results.setting()));
  const lab::MarkdownReport md = lab::markdown_report(all, results.setting(), "plots");
  ensure_folder(folder / "plots");
  for (const auto& [name, svg] : md.pictures) write_file_atomic(folder / "plots" / name, svg);
  // Of an experiment that has fewer pictures than it had, the others would stay.
  for (const lab::Judged& j : all) {
    std::error_code ignored;
    for (int number = 1;; ++number) {
      const std::string name = fmt::format("{}-{}.svg", j.experiment->name, number);
      if (!md.pictures.contains(name) && !std::filesystem::remove(folder / "plots" / name, ignored)) break;
    }
  }
  write_file_atomic(folder / "lab.md", md.text);
  write_file_atomic(folder / "lab.csv", lab::csv_report(all));
  io.print(fmt::format(
      "{0}/lab.html  one page, to be opened in a browser\n{0}/lab.md    the same as Markdown, its pictures in "
      "plots/\n{0}/lab.csv   the verdicts as a table\n",
      folder.string()));
  return kExitOk;
}

}  // namespace

Command lab_report_command() {
  return {"lab report",
          "write what was measured as one offline page, as Markdown and as CSV",
          "[--key value ...]",
          {{"bary lab report", "of out/lab-quick"}, {"bary lab report --budget chapter", "of out/lab-chapter"}},
          [] { return LabRequest().report_options().help(); },
          run_report};
}

}  // namespace bary
