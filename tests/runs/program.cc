// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <stdlib.h>
#include <sys/wait.h>

#include <cstdlib>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/text/synthetic.h"

namespace bary::runs_test {
namespace {

std::string quoted(const std::string& s) {
  std::string q = "'";
  for (char c : s) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

}  // namespace

Ran shell(const std::filesystem::path& folder, const std::string& line) {
  write_file_atomic(folder / ".command", "PROGRAM=" BARY_PROGRAM "\nbary() { $PROGRAM \"$@\"; }\n" + line + "\n");
  const std::string at = quoted(folder.string());
  const int status = std::system(("cd " + at + " && bash .command >.out 2>.err").c_str());
  Ran r;
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  r.out = read_file(folder / ".out");
  r.err = read_file(folder / ".err");
  return r;
}

Ran bary(const std::filesystem::path& folder, const std::vector<std::string>& args, const std::string& input) {
  write_file_atomic(folder / ".in", input);
  std::string line = "bary";
  for (const std::string& a : args) line += " " + quoted(a);
  return shell(folder, line + " < .in");
}

Workplace::Workplace() {
  std::string name = (std::filesystem::temp_directory_path() / "bary-cli-XXXXXX").string();
  BARY_CHECK(mkdtemp(name.data()) != nullptr, "cannot make a folder under {}",
             std::filesystem::temp_directory_path().string());
  path_ = name;
}
Workplace::~Workplace() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
void Workplace::write(const std::string& name, const std::string& bytes) const {
  write_file_atomic(path_ / name, bytes);
}
std::string Workplace::read(const std::string& name) const { return read_file(path_ / name); }

std::string made_up_text(int lines) {
  auto language = make_synthetic("two-nouns", {});
  return language->text(lines, SyntheticSplit::training, 1);
}

}  // namespace bary::runs_test
