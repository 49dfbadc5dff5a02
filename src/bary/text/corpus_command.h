// SPDX-License-Identifier: Apache-2.0
// Inside text/: one program run with its output collected. Arguments are a list; no shell reads them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace bary {

struct CommandOptions {
  std::filesystem::path folder = {};  // where it runs; empty: here
  int64_t most_output = 1 << 20;      // bytes of standard output; more is an Error
  double seconds = 120;               // then it is stopped: an Error
};

struct CommandResult {
  int exit_code = 0;   // 128 + signal where it was killed
  std::string output;  // standard output
  std::string errors;  // the end of standard error, at most 64 KiB
};

// The environment is passed on, standard input is empty. A program that ends with a failure is a result, not an Error;
// one that can't be started, runs too long or writes too much is an Error (ErrorKind::system).
CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

// A new folder below the system's temporary one, removed with all it holds at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bary
