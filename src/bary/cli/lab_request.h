// SPDX-License-Identifier: Apache-2.0
// What `bary lab` is asked for.
#pragma once
#include <string>

#include "bary/base/options.h"
#include "bary/lab/results.h"

namespace bary {

struct LabRequest {
  lab::Budget budget = lab::Budget::quick;
  std::string corpus = "tinyshakespeare", out_dir;
  int64_t seeds = 3, threads = 0;
  bool json = false;

  Options list_options();
  Options run_options();
  Options report_options();
  std::string folder() const { return out_dir.empty() ? "out/lab-" + lab::budget_text(budget) : out_dir; }
  lab::Plan plan() const { return {budget, seeds, corpus != "tinyshakespeare"}; }
  lab::Setting setting() const { return {budget, corpus, ""}; }

 private:
  void add_budget(Options& o);
};

}  // namespace bary
