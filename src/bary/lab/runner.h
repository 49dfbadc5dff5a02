// SPDX-License-Identifier: Apache-2.0
// Runs the units of experiments that are not in the results yet, one after another, and keeps each as it is finished.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "bary/lab/results.h"

namespace bary::lab {

struct RunOptions {
  Plan plan;
  DataOptions data;        // of the text, read when the first unit asks for it
  nlohmann::json machine;  // as this_machine() says it; kept beside the rows
};

struct RunProgress {
  const Experiment& experiment;
  const Unit& unit;
  double share;                        // of this unit
  int64_t done, units;                 // of all chosen experiments; rows that were there count as done
  std::optional<double> seconds_left;  // of all; unknown at first
};
struct RunHooks {
  std::function<void(const RunProgress&)> progress;
  std::function<void(const RunProgress&, const nlohmann::json& row)> finished;
  std::function<void(const Experiment&)> judged;  // after the last unit of each
  std::function<bool()> stop;
};

// False if it was stopped; what was finished is kept.
bool run_experiments(std::span<const Experiment* const> chosen, const RunOptions& options, Results& results,
                     const RunHooks& hooks);

// Of the units not measured yet.
double gflop_left(const Experiment& e, const Plan& plan, const Rows& rows);

}  // namespace bary::lab
