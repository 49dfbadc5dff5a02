// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/lab_request.h"

namespace bary {

void LabRequest::add_budget(Options& o) {
  o.add("budget", &budget,
        {{"quick", lab::Budget::quick}, {"chapter", lab::Budget::chapter}, {"smoke", lab::Budget::smoke}},
        "quick: minutes; chapter: the published settings, hours; smoke: does everything run");
  o.add("out_dir", &out_dir, "folder of results.json and the page (default out/lab-BUDGET)", {.value_name = "FOLDER"});
}

Options LabRequest::list_options() {
  Options o("lab list");
  o.add("seeds", &seeds, "runs of each row in the forecast", {.min = 1, .max = 1000});
  o.add("json", &json, "print as JSON");
  return o;
}

Options LabRequest::run_options() {
  Options o("lab run");
  add_budget(o);
  o.add("seeds", &seeds, "runs of each row at the chapter's budget, with seeds 1, 2, ...", {.min = 1, .max = 1000});
  o.add("corpus", &corpus, "text of the experiments that learn from one: a file, a folder or a name");
  o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
  o.add("json", &json, "print the outcomes as JSON");
  return o;
}

Options LabRequest::report_options() {
  Options o("lab report");
  add_budget(o);
  return o;
}

}  // namespace bary
