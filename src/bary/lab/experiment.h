// SPDX-License-Identifier: Apache-2.0
// What an experiment of the lab is: a question, the claims it decides with the rule of each, the units of work that are
// measured one by one, and the judgement that turns measured rows into tables, pictures and verdicts. Units run and are
// kept one at a time, so an interrupted run loses none that was finished; judging needs the rows alone, so a report can
// be made again without running anything.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bary/lab/sample.h"
#include "bary/report/plot.h"
#include "bary/report/table.h"
#include "bary/train/data.h"

namespace bary::lab {

// smoke: does every part run (seconds; decides nothing that needs training); quick: minutes; chapter: the published
// settings.
enum class Budget { smoke, quick, chapter };

struct Plan {
  Budget budget = Budget::quick;
  int64_t seeds = 3;
  bool own_text = false;  // not tiny Shakespeare: the published figures are of another text

  template <class T>
  T pick(T smoke, T quick, T chapter) const {
    return budget == Budget::smoke ? smoke : budget == Budget::quick ? quick : chapter;
  }
  int64_t runs() const { return budget == Budget::chapter ? seeds : 1; }  // of each row that has seeds
  bool published_setting() const { return budget == Budget::chapter && !own_text; }
  // A verdict that needs the published budget (and text) is left open under any other.
  Verdict if_published(Verdict v) const { return published_setting() ? v : Verdict::undecided; }
  Verdict unless_smoke(Verdict v) const { return budget == Budget::smoke ? Verdict::undecided : v; }
};

struct Claim {
  std::string id;         // of the chapter, unique in the experiment: "B8 train"
  std::string says;       // one sentence
  std::string published;  // figures as the chapter prints them; empty where they are lost or none was given
  std::string rule;       // when the claim holds, written down before anything ran
};

// Handed to a unit while it runs.
struct Work {
  const Plan& plan;
  // The corpus, coded when first asked for. Input Error where a part of it has no window of so many tokens: asked
  // before a training, not found out after it.
  std::function<const TrainData&(int64_t window)> text;
  std::function<void(double share)> progress;  // 0 .. 1 of this unit; throws Stopped when the user wants to stop
};
struct Stopped {};

struct Unit {
  std::string key;   // "block/2": row and seed; unique in the experiment
  double gflop = 0;  // what it costs, roughly, for the time left
  std::function<nlohmann::json(const Work&)> run;
};

struct Figure {
  std::string title, x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
};
struct HeatMap {
  std::string title, row_axis, column_axis;
  std::vector<std::string> row_labels, column_labels;
  std::vector<double> values;  // row by row
  double low = 0, high = 1;
};
struct Outcome {
  std::string id;        // of the claim
  std::string measured;  // with its spread
  Verdict verdict = Verdict::undecided;
};

struct Findings {
  std::vector<Outcome> outcomes;
  std::vector<std::pair<std::string, Table>> tables;  // with a title each
  std::vector<Figure> figures;
  std::vector<HeatMap> maps;
  std::vector<std::string> notes;  // sentences: what was chosen where the text is silent, why a figure differs

  Verdict verdict(const std::string& id) const {  // as said; open if nothing was
    for (const Outcome& o : outcomes)
      if (o.id == id) return o.verdict;
    return Verdict::undecided;
  }
  // Words between figures none of which was measured yet ("? against ?") are left out.
  void say(std::string id, std::string measured, Verdict verdict) {
    const bool empty = verdict == Verdict::undecided && measured.find_first_of("0123456789") == std::string::npos;
    outcomes.push_back({std::move(id), empty ? "" : std::move(measured), verdict});
  }
};

struct Experiment {
  std::string name, question;
  int revision = 1;  // raised when a unit measures something else: rows of another revision are not used
  std::vector<Claim> claims;
  std::function<std::vector<Unit>(const Plan&)> units;
  std::function<Findings(const Rows&, const Plan&)> judge;

  const Claim& claim(const std::string& id) const;  // must exist
};

// In the order of the chapter.
const std::vector<Experiment>& experiments();
// Names, "all", in any order and without repeats; an unknown one is an input Error with the nearest name.
std::vector<const Experiment*> choose_experiments(const std::vector<std::string>& names);

std::string verdict_text(Verdict v);  // "holds", "does not hold", "undecided"

}  // namespace bary::lab
