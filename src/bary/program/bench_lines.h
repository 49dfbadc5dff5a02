// SPDX-License-Identifier: Apache-2.0
// The protocol of bench/rivals/interleave.py: one process runs at a time, so all see the same machine.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "bary/cli/command.h"

namespace bary {

// Prints `about` on one line, then answers each line "step N" of standard input with the milliseconds of N calls of
// `seconds`, until "quit". Returns the exit code.
int answer_steps(const nlohmann::json& about, const std::function<double()>& seconds, Io& io);

}  // namespace bary
