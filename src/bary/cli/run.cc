// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/run.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"
#include "bary/cli/help.h"
#include "bary/kernel/target.h"

namespace bary {
namespace {

using Args = std::span<const std::string>;

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

// Anywhere before "--", so that it works behind other keys too; a value is protected by '=': --start=--help.
bool wants_help(Args args) {
  auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end, asks_for_help);
}

const Command* find_command(std::span<const Command> commands, const std::string& name) {
  for (const auto& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

// The words that may stand after `group`: "train", "encode", ... after "tokenizer"; the first words after "".
std::vector<std::string> next_words(std::span<const Command> commands, const std::string& group) {
  std::string prefix = group.empty() ? "" : group + " ";
  std::vector<std::string> words;
  for (const auto& command : commands) {
    if (!command.name.starts_with(prefix)) continue;
    std::string rest = command.name.substr(prefix.size());
    std::string word = rest.substr(0, rest.find(' '));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

[[noreturn]] void unknown(std::span<const Command> commands, const std::string& group, const std::string& word) {
  std::string prefix = group.empty() ? "bary" : "bary " + group;
  auto words = next_words(commands, group);
  if (auto guess = nearest(word, words))
    fail("{} {}: unknown; did you mean {} {}?", prefix, quote_if_odd(word), prefix, *guess);
  fail("{} {}: unknown; the commands are {}", prefix, quote_if_odd(word), joined_with_or(words.data(), words.size()));
}

int dispatch(std::span<const Command> commands, Args args, Io& io) {
  if (args.empty()) {
    io.note(overview_text(commands, ""));
    return kExitInput;
  }
  const std::string& first = args[0];
  if (first == "--version" || first == "version") {
    kernel::apply_isa_from_environment();
    io.print(version_text());
    io.print(fmt::format("kernels run on {} ({}; BARY_ISA chooses, the results are the same bits)\n",
                         kernel::active_isa(), fmt::join(kernel::available_isas(), ", ")));
    return kExitOk;
  }
  if (first == "help") {  // "help tokenizer encode" is "tokenizer encode --help"
    std::vector<std::string> turned(args.begin() + 1, args.end());
    turned.push_back("--help");
    return dispatch(commands, turned, io);
  }
  if (asks_for_help(first)) {
    io.print(overview_text(commands, ""));
    return kExitOk;
  }
  BARY_CHECK(!first.starts_with("-"), "{}: the command comes first, as in bary train {}; bary --help lists them",
             quote_if_odd(first), quote_if_odd(first));
  size_t used = 1;
  const Command* command = find_command(commands, first);
  if (!command) {
    auto words = next_words(commands, first);
    if (words.empty()) unknown(commands, "", first);
    if (args.size() < 2 || asks_for_help(args[1])) {
      if (args.size() < 2)
        io.note(overview_text(commands, first));
      else
        io.print(overview_text(commands, first));
      return args.size() < 2 ? kExitInput : kExitOk;
    }
    command = find_command(commands, first + " " + args[1]);
    if (!command) unknown(commands, first, args[1]);
    used = 2;
  }
  Args rest = args.subspan(used);
  if (wants_help(rest)) {
    io.print(command_help(*command));
    return kExitOk;
  }
  return command->run(rest, io);
}

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::input:
      return kExitInput;
    case ErrorKind::system:
      return kExitSystem;
    case ErrorKind::numeric:
      return kExitNumeric;
  }
  return kExitSystem;
}

void complain(Io& io, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');  // one line, whoever wrote it
  io.note("bary: " + message);
}

std::string writing_advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space or write elsewhere";
    case EBADF:  // closed by whoever started the program (`>&-`)
      return "open it, for example with > FILE";
    default:
      return "write elsewhere, for example with > FILE";
  }
}

int closed(Io& io, const OutputClosed& output) {
  const int error_number = output.error_number ? output.error_number : EIO;
  if (error_number == EPIPE) return kExitPipe;  // silent, as any program before `head`
  complain(io, fmt::format("cannot write standard output: {}; {}", std::generic_category().message(error_number),
                           writing_advice(error_number)));
  return kExitSystem;
}

}  // namespace

int run_with(std::span<const Command> commands, Args args, Io& io) {
  try {
    int code = dispatch(commands, args, io);
    io.flush();
    return code;
  } catch (const OutputClosed& output) {
    return closed(io, output);
  } catch (const Error& error) {
    // What was printed so far is a result too.
    io.out.flush();
    complain(io, error.what());
    return exit_code_of(error.kind());
  } catch (const std::bad_alloc&) {
    complain(io, "out of memory; use a smaller model, batch or text");
  } catch (const std::exception& error) {
    complain(io, fmt::format("unexpected: {}; this is a mistake of bary, please report it with the command line",
                             error.what()));
  } catch (...) {
    complain(io, "unexpected failure; this is a mistake of bary, please report it with the command line");
  }
  return kExitSystem;
}

int run(std::span<const Command> commands, int argc, const char* const* argv, Io io) {
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  return run_with(commands, args, io);
}

std::string version_text() {
#if defined(__clang__)
  std::string compiler = "clang " __clang_version__;
#else
  std::string compiler = "gcc " __VERSION__;
#endif
  while (!compiler.empty() && compiler.back() == ' ') compiler.pop_back();
  return fmt::format("bary {}\ncompiled by {}\n", BARY_VERSION, compiler);
}

}  // namespace bary
