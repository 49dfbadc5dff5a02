// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/machine.h"

#include <fmt/format.h>

#include <fstream>

#include "bary/base/parallel.h"
#include "bary/kernel/target.h"

namespace bary::lab {
namespace {

std::string processor() {  // as Linux names it
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

nlohmann::json this_machine() {
  return {{"cpu", processor()}, {"cores", available_cores()}, {"threads", threads()}, {"isa", kernel::active_isa()}};
}

std::string machine_text(const nlohmann::json& m) {
  if (!m.is_object()) return "";
  return fmt::format("{}, {} cores, {} threads, {}", m.value("cpu", "unknown processor"), m.value("cores", 0),
                     m.value("threads", 0), m.value("isa", "?"));
}

}  // namespace bary::lab
