// SPDX-License-Identifier: Apache-2.0
// What the executable offers: the commands of cli/ and those that need a floor beside it.
#pragma once
#include <vector>

#include "bary/cli/command.h"

namespace bary {

const std::vector<Command>& all_commands();

// bary bench step: a training step as a share of this machine's limits.
Command bench_step_command();

}  // namespace bary
