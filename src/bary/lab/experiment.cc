// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/experiment.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/lab/list.h"

namespace bary::lab {

const Claim& Experiment::claim(const std::string& id) const {
  for (const Claim& c : claims)
    if (c.id == id) return c;
  fail("lab: experiment {} has no claim {}", name, id);
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {average(),    embedding(),       mixing(),  ladder(),     scores(),
                                              scale(),      norms(),           dropout(), positions(),  cost(),
                                              parameters(), encoder_decoder(), encoder(), recurrence(), two_nouns(),
                                              induction(),  annotated(),       parity(),  leak(),       lengths()};
  return all;
}

std::vector<const Experiment*> choose_experiments(const std::vector<std::string>& names) {
  std::vector<std::string> known{"all"};
  for (const Experiment& e : experiments()) known.push_back(e.name);
  for (const std::string& n : names) {
    if (std::find(known.begin(), known.end(), n) != known.end()) continue;
    const auto near = nearest(n, known);
    fail("lab: there is no experiment '{}'; {}", n,
         near ? "did you mean " + *near + "?" : "bary lab list shows those there are");
  }
  std::vector<const Experiment*> chosen;
  for (const Experiment& e : experiments()) {
    const bool named = std::find(names.begin(), names.end(), e.name) != names.end();
    if (named || std::find(names.begin(), names.end(), "all") != names.end()) chosen.push_back(&e);
  }
  return chosen;
}

std::string verdict_text(Verdict v) {
  return v == Verdict::holds ? "holds" : v == Verdict::fails ? "does not hold" : "undecided";
}

}  // namespace bary::lab
