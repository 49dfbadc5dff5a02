// SPDX-License-Identifier: Apache-2.0
// The command run in this process, its streams caught.
#pragma once
#include <sstream>
#include <string>
#include <vector>

#include "bary/cli/run.h"

namespace bary {

struct Ran {
  int code = 0;
  std::string out, err;
};

inline Ran ran(std::span<const Command> commands, const std::vector<std::string>& args, const std::string& input = "") {
  std::ostringstream out, err;
  Io io{out, err, [&] { return input; }};
  int code = run_with(commands, args, io);
  return {code, out.str(), err.str()};
}

}  // namespace bary
