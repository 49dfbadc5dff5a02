// SPDX-License-Identifier: Apache-2.0
// The bary command as a function, so that tests run it without a process.
#pragma once
#include <span>
#include <string>

#include "bary/cli/command.h"

namespace bary {

// Finds the command, prints help where it is asked for, and turns what is thrown into one line on standard error and an
// exit code (command.h). Never throws.
int run(std::span<const Command> commands, int argc, const char* const* argv, Io io);
int run_with(std::span<const Command> commands, std::span<const std::string> args, Io& io);

std::string version_text();

}  // namespace bary
