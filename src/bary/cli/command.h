// SPDX-License-Identifier: Apache-2.0
// What a subcommand is. Each has its own file, which describes and runs it; commands.cc and program/ list them.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bary/cli/io.h"

namespace bary {

struct Example {
  std::string command;  // as typed
  std::string meaning;
};

struct Command {
  std::string name;     // "train", or two words: "tokenizer encode"
  std::string summary;  // one line, without a full stop
  std::string usage;    // what follows the name: "[FILE|-] [--key value ...]"
  std::vector<Example> examples;
  std::function<std::string()> keys;  // help of its options (base/options.h); may be empty
  // `args` is what follows the name. Returns the exit code; errors are thrown.
  std::function<int(std::span<const std::string> args, Io& io)> run;
};

// Those of this folder, in the order of help; program/ adds what stands beside it.
const std::vector<Command>& commands();

// Exit codes, also in `bary --help`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitSystem = 1;   // the machine said no, or something unexpected
inline constexpr int kExitInput = 2;    // the request or a file is not what it should be
inline constexpr int kExitNumeric = 3;  // a number is not finite, or a model that should be causal sees the future
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitPipe = 141;  // the reader of standard output has gone

}  // namespace bary
