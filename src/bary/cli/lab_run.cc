// SPDX-License-Identifier: Apache-2.0
// bary lab list and bary lab run: the chapter's experiments, measured here beside the published figures.
#include <fmt/format.h>

#include "bary/base/clock.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/lab_commands.h"
#include "bary/cli/lab_request.h"
#include "bary/io/run_folder.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/target.h"
#include "bary/lab/machine.h"
#include "bary/lab/page.h"
#include "bary/lab/runner.h"
#include "bary/report/format.h"
#include "bary/report/table.h"

namespace bary {
namespace {

using lab::Experiment;

// Small models reach about half of what the register tile does.
double seconds_for(double gflop, double tile_rate) { return gflop / (0.5 * tile_rate); }

std::string claim_ids(const Experiment& e) {
  std::string ids;
  for (const lab::Claim& c : e.claims) ids += (ids.empty() ? "" : ", ") + c.id;
  return ids;
}

void list_one(const Experiment& e, Io& io) {
  io.print(fmt::format("{}: {}\n\n", e.name, e.question));
  for (const lab::Claim& c : e.claims) {
    io.print(fmt::format("{}  {}\n    holds if {}\n", c.id, c.says, c.rule));
    if (!c.published.empty()) io.print(fmt::format("    published: {}\n", c.published));
  }
}

// What experiments are expected to take on this machine
class Forecast {
 public:
  explicit Forecast(const lab::Plan& plan) : plan_(plan) {
    kernel::apply_isa_from_environment();
    tile_rate_ = kernel::measure_tile_peak();
  }
  double seconds(const Experiment& e, lab::Budget budget) const {
    lab::Plan plan = plan_;
    plan.budget = budget;
    return seconds_for(lab::gflop_left(e, plan, {}), tile_rate_);
  }

 private:
  lab::Plan plan_;
  double tile_rate_;
};

Json to_json(const Experiment& e, const Forecast& forecast) {
  Json claims = Json::array();
  for (const lab::Claim& c : e.claims)
    claims.push_back({{"id", c.id}, {"says", c.says}, {"published", c.published}, {"rule", c.rule}});
  return {
      {"name", e.name},
      {"question", e.question},
      {"seconds",
       {{"quick", forecast.seconds(e, lab::Budget::quick)}, {"chapter", forecast.seconds(e, lab::Budget::chapter)}}},
      {"claims", claims}};
}

int run_list(std::span<const std::string> args, Io& io) {
  LabRequest r;
  Options o = r.list_options();
  const auto names = o.parse_args(args);
  const auto chosen = lab::choose_experiments(names.empty() ? std::vector<std::string>{"all"} : names);
  if (!names.empty() && !r.json) {
    o.refuse({"seeds"}, "changes the forecast of times, and with a NAME the claims are shown (with --json both)");
    for (const Experiment* e : chosen) list_one(*e, io);
    return kExitOk;
  }
  const Forecast forecast(r.plan());
  if (r.json) {
    Json all = Json::array();
    for (const Experiment* e : chosen) all.push_back(to_json(*e, forecast));
    io.print(dump_json(all) + "\n");
    return kExitOk;
  }
  auto time = [&](const Experiment& e, lab::Budget b) { return duration_text(forecast.seconds(e, b)); };
  Table t({{"experiment", Align::left}, {"quick", Align::right}, {"chapter", Align::right}, {"question", Align::left}});
  for (const Experiment& e : lab::experiments()) {
    t.row({e.name, time(e, lab::Budget::quick), time(e, lab::Budget::chapter), e.question});
    t.row({"", "", "", "decides " + claim_ids(e)});
  }
  io.print(t.text());
  io.print("\nTimes are forecasts for this machine. The claims of one with their rules: bary lab list NAME\n");
  return kExitOk;
}

// Tells how far the run is: one line redrawn on a terminal, else a line for each finished row.
class LabScreen {
 public:
  explicit LabScreen(Io& io) : io_(io) {}

  void progress(const lab::RunProgress& p) {
    if (!io_.err_is_terminal) return;
    if (const double now = seconds_now(); now - drawn_ < 0.1) {
      return;
    } else {
      drawn_ = now;
    }
    std::string line = fmt::format("{:>3.0f}%  {} {}  row {} of {}", 100 * p.share, p.experiment.name, p.unit.key,
                                   p.done + 1, p.units);
    if (p.seconds_left) line += "  " + duration_text(*p.seconds_left) + " left";
    io_.draw("\r" + fitted(line, io_.columns - 1, io_.unicode) + "\x1b[K");
    shown_ = true;
  }
  void finished(const lab::RunProgress& p, const nlohmann::json& row) {
    clear();
    std::string line = fmt::format("{:>3}/{}  {} {}  {}", p.done, p.units, p.experiment.name, p.unit.key,
                                   duration_text(row["seconds"].get<double>()));
    if (p.seconds_left && p.done < p.units) line += "  (" + duration_text(*p.seconds_left) + " left)";
    io_.note(line);
  }
  void clear() {
    if (shown_) io_.draw("\r\x1b[K");
    shown_ = false;
  }

 private:
  Io& io_;
  double drawn_ = 0;
  bool shown_ = false;
};

Json outcomes_json(const lab::Judged& j) {
  Json list = Json::array();
  for (const lab::Outcome& o : j.findings.outcomes)
    list.push_back({{"claim", o.id},
                    {"measured", o.measured},
                    {"published", j.experiment->claim(o.id).published},
                    {"verdict", lab::verdict_text(o.verdict)}});
  return {{"experiment", j.experiment->name}, {"outcomes", list}};
}

int run_lab(std::span<const std::string> args, Io& io) {
  LabRequest r;
  Options o = r.run_options();
  const auto names = o.parse_args(args);
  BARY_CHECK(!names.empty(), "lab run: name experiments, or all; bary lab list shows them");
  if (r.budget != lab::Budget::chapter)
    o.refuse({"seeds"}, "is for --budget chapter, and --budget " + lab::budget_text(r.budget) + " runs each row once");
  const auto chosen = lab::choose_experiments(names);
  set_threads(static_cast<int>(r.threads));
  kernel::apply_isa_from_environment();
  check_writable(r.folder());
  ensure_folder(r.folder());
  const FolderLock lock(r.folder());
  lab::Results results = lab::Results::open(r.folder(), r.setting());
  for (const Experiment* e : chosen)
    if (results.outdated(*e))
      io.note(e->name + ": the rows in " + r.folder() + " were measured by an older recipe and are measured anew");
  LabScreen screen(io);
  InterruptGuard guard;
  lab::RunOptions options;
  options.plan = r.plan();
  options.data.dataset = r.corpus;
  options.data.notice = [&](const std::string& line) { screen.clear(), io.note(line); };
  options.machine = lab::this_machine();
  Json json = Json::array();
  lab::RunHooks hooks;
  hooks.progress = [&](const lab::RunProgress& p) { screen.progress(p); };
  hooks.finished = [&](const lab::RunProgress& p, const nlohmann::json& row) { screen.finished(p, row); };
  hooks.stop = [] { return interrupted(); };
  hooks.judged = [&](const Experiment& e) {
    screen.clear();
    const lab::Judged j = lab::judge(e, results);
    r.json ? json.push_back(outcomes_json(j)) : io.print(lab::findings_text(j, {io.unicode, io.columns}));
  };
  const bool complete = lab::run_experiments(chosen, options, results, hooks);
  screen.clear();
  if (r.json) io.print(dump_json(json) + "\n");
  if (!complete) {
    io.note("stopped; finished rows are kept, the same command goes on with the rest");
    return kExitInterrupted;
  }
  io.note(
      fmt::format("kept in {}/{}; as a page: bary lab report --out_dir {}", r.folder(), lab::kResultsName, r.folder()));
  return kExitOk;
}

}  // namespace

Command lab_list_command() {
  return {"lab list",
          "the chapter's experiments: questions, claims, expected times",
          "[NAME...]",
          {{"bary lab list", "all of them"}, {"bary lab list ladder", "the claims of one, and the rule of each"}},
          [] { return LabRequest().list_options().help(); },
          run_list};
}

Command lab_run_command() {
  return {"lab run",
          "measure experiments of the chapter and judge their claims",
          "NAME...|all [--key value ...]",
          {{"bary lab run average scores", "two that take seconds"},
           {"bary lab run all --budget quick", "everything, in minutes; what a small budget can't decide stays open"},
           {"bary lab run ladder --budget chapter --seeds 3", "the published settings; hours"},
           {"bary lab run ladder --corpus book.txt --out_dir out/lab-book", "on your own text"}},
          [] { return LabRequest().run_options().help(); },
          run_lab};
}

}  // namespace bary
