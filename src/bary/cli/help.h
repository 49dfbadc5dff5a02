// SPDX-License-Identifier: Apache-2.0
// Help that teaches by example.
#pragma once
#include <span>
#include <string>

#include "bary/cli/command.h"

namespace bary {

// All commands, or those of a group ("tokenizer"), with a first example each.
std::string overview_text(std::span<const Command> commands, const std::string& group);
std::string command_help(const Command& command);

}  // namespace bary
