// SPDX-License-Identifier: Apache-2.0
// Runs the bary program as a person would: a process with arguments, its standard input, what it printed, its exit
// code.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bary::runs_test {

struct Ran {
  int code = -1;  // 128 + signal if it was killed
  std::string out, err;
};
// In `folder`; `input` on standard input.
Ran bary(const std::filesystem::path& folder, const std::vector<std::string>& args, const std::string& input = "");
// The same through a shell, for pipes and redirections: "bary" is the program, $PROGRAM its path (what a background job
// must be, so that its process number is the program's own).
Ran shell(const std::filesystem::path& folder, const std::string& line);

// A folder of its own for each test, removed at its end.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const;
  std::string read(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

std::string made_up_text(int lines);  // some English-like text, always the same

}  // namespace bary::runs_test
