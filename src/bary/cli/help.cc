// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace bary {
namespace {

std::string examples_text(std::span<const Example> examples) {
  std::string out;
  for (const auto& example : examples) out += fmt::format("  {}\n      {}\n", example.command, example.meaning);
  return out;
}

}  // namespace

std::string overview_text(std::span<const Command> commands, const std::string& group) {
  std::string out = group.empty() ? "bary: train, run and look inside transformer language models on a CPU\n" : "";
  out += fmt::format("\nUsage: bary {}COMMAND [arguments] [--key value ...]\n\nCommands:\n",
                     group.empty() ? "" : group + " ");
  std::vector<Example> first;
  size_t width = 0;
  auto shown = [&](const Command& command) { return group.empty() || command.name.starts_with(group + " "); };
  for (const auto& command : commands) {
    if (shown(command)) width = std::max(width, command.name.size());
  }
  for (const auto& command : commands) {
    if (!shown(command)) continue;
    out += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
    if (!command.examples.empty()) first.push_back(command.examples[0]);
  }
  if (!first.empty()) out += "\nExamples:\n" + examples_text(first);
  out += fmt::format("\nbary {}COMMAND --help explains one command.\n", group.empty() ? "" : group + " ");
  if (group.empty()) {
    out +=
        "Results go to standard output, progress to standard error. Exit codes: 0 done, 1 the machine said no,\n"
        "2 the request or a file is not what it should be, 3 a number is not finite or a model sees the future,\n"
        "130 interrupted, 141 the reader of standard output has gone.\n";
  }
  return out.substr(out.find_first_not_of('\n'));
}

std::string command_help(const Command& command) {
  std::string out =
      fmt::format("bary {}: {}\n\nUsage: bary {} {}\n", command.name, command.summary, command.name, command.usage);
  if (command.keys) out += "\n" + command.keys();
  if (!command.examples.empty()) out += "\nExamples:\n" + examples_text(command.examples);
  return out;
}

}  // namespace bary
