// SPDX-License-Identifier: Apache-2.0
#include "bary/program/bench_lines.h"

#include <iostream>
#include <sstream>

#include "bary/base/error.h"
#include "bary/base/json.h"

namespace bary {

int answer_steps(const nlohmann::json& about, const std::function<double()>& seconds, Io& io) {
  io.print(dump_json(about, -1) + "\n");
  io.flush();
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    std::istringstream words(line);
    std::string word;
    int64_t n = 0;
    BARY_CHECK(words >> word >> n && word == "step" && n > 0, "bench: got '{}', expected \"step N\" or \"quit\"", line);
    nlohmann::json ms = nlohmann::json::array();
    for (int64_t i = 0; i < n; ++i) ms.push_back(seconds() * 1e3);
    io.print(dump_json({{"ms", ms}}, -1) + "\n");
    io.flush();
  }
  return kExitOk;
}

}  // namespace bary
