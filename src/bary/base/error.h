// SPDX-License-Identifier: Apache-2.0
// What bary throws. The library never prints, exits or aborts: a caller's mistake or a bad file is an exception whose
// message names the operation, what came, what was expected and one next step.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace bary {

// Why it failed decides what a program does next; the command maps it to its exit code (docs/errors.md).
enum class ErrorKind {
  // the caller's mistake, a file that is not what it should be, an output folder that cannot be written to: refused
  // before anything changed (exit 2)
  input,
  system,   // the machine said no: disk full, no permission to read, out of memory (exit 1)
  numeric,  // a loss, gradient, weight, logit or vector not finite; a causal model that sees the future (exit 3)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// fail("train: block_size is {} but the text has {} tokens; choose a smaller --block_size", T, n)
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::input, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace bary

// Checked at the door of every public operation; kernels trust their callers.
#define BARY_CHECK(condition, ...)               \
  do {                                           \
    if (!(condition)) ::bary::fail(__VA_ARGS__); \
  } while (false)
