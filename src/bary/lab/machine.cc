// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/machine.h"

#include <fmt/format.h>

#include <fstream>

#include "bary/base/error.h"
#include "bary/base/json.h"
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

void check_machines(const nlohmann::json& machines, const std::string& what) {
  BARY_CHECK(machines.is_array(), "{}: \"machines\" is not a list; give another --out_dir", what);
  for (const auto& m : machines) {
    json_string(m, "cpu", what);
    json_string(m, "isa", what);
    json_integer(m, "cores", what);
    json_integer(m, "threads", what);
  }
}

std::string machines_text(const nlohmann::json& machines) {
  auto some = [](const nlohmann::json& n, const char* what) {
    return fmt::format("{} {}{}", n.get<int64_t>(), what, n == 1 ? "" : "s");
  };
  std::string text;
  for (const auto& m : machines)
    text += fmt::format("{}{}, {}, {}, {}", text.empty() ? "" : "; ", m["cpu"].get<std::string>(),
                        some(m["cores"], "core"), some(m["threads"], "thread"), m["isa"].get<std::string>());
  return text;
}

}  // namespace bary::lab
