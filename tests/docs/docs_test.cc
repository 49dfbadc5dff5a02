// SPDX-License-Identifier: Apache-2.0
// What the pages promise must be there: links, paths, make targets, and every bary command line with its options.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace bary {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = BARY_SOURCE_DIR;

struct Page {
  fs::path path;  // from the root
  std::string text;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Page> pages() {
  std::vector<Page> out;
  auto take = [&](const fs::path& path) {
    if (path.extension() == ".md") out.push_back({fs::relative(path, kRoot), read(path)});
  };
  for (const auto& entry : fs::directory_iterator(kRoot)) take(entry.path());
  for (const char* folder : {"docs", "tools", "bench", "tests", "src", "examples"}) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) take(entry.path());
  }
  return out;
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), {}};
}

TEST(Docs, ThePagesEveryProjectHasAreThere) {
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs/map.md"}) {
    EXPECT_GT(read(kRoot / page).size(), 200u) << page;
  }
}

TEST(Docs, RelativeLinksPointAtSomething) {
  const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  for (const Page& page : pages()) {
    for (const auto& match : matches(page.text, link)) {
      const std::string target = match[1];
      if (target.find("://") != std::string::npos || target.rfind("mailto:", 0) == 0) continue;
      EXPECT_TRUE(fs::exists(kRoot / page.path.parent_path() / target)) << page.path << " links to " << target;
    }
  }
}

TEST(Docs, PathsInBackticksExist) {
  // `src/bary/nn/`, `tests/golden`; not patterns such as src/bary/*/x.cc or tests/x_{a,b}
  const std::regex path(R"(`((src|tests|tools|docs|cmake|bench|examples)/[A-Za-z0-9_./-]*)`)");
  size_t seen = 0;
  for (const Page& page : pages()) {
    for (const auto& match : matches(page.text, path)) {
      ++seen;
      const std::string name = match[1];
      const bool beside = fs::exists(kRoot / page.path.parent_path() / name);
      EXPECT_TRUE(beside || fs::exists(kRoot / name)) << page.path << " names " << name;
    }
  }
  EXPECT_GT(seen, 5u);
}

TEST(Docs, MakeTargetsExist) {
  const std::string makefile = read(kRoot / "Makefile");
  std::set<std::string> targets;
  for (const auto& match : matches(makefile, std::regex(R"((?:^|\n)([a-z-]+):)"))) targets.insert(match[1]);
  EXPECT_TRUE(targets.count("test"));
  for (const Page& page : pages()) {
    for (const auto& match : matches(page.text, std::regex(R"((?:`|\n {4}|\n)make ([a-z-]+)\b)"))) {
      EXPECT_TRUE(targets.count(match[1])) << page.path << ": make " << match[1];
    }
  }
}

#ifdef BARY_PROGRAM
std::string run(const std::string& command, int* exit_code) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return output;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

// "bary tokenizer train a.txt --vocab_size 1024 | head" -> the help of `tokenizer train` must know --vocab_size.
TEST(Docs, CommandLinesUseOptionsThatExist) {
  const std::regex line(R"((?:\n|\| |\$ |`)(?: {4})?(?:build/release/bin/)?bary((?: [a-z][a-z_]*)+)([^\n|`]*))");
  const std::regex option(R"((?:^|\s)--([A-Za-z][A-Za-z0-9_-]*))");
  for (const Page& page : pages()) {
    // a backslash at a line's end goes on with the same command
    const std::string text = std::regex_replace(page.text, std::regex(R"(\\\n\s*)"), " ");
    for (const auto& match : matches(text, line)) {
      // The words before the first option may end in an argument: take the longest start that is a command.
      std::string words = match[1], help;
      int code = -1;
      while (!words.empty() &&
             (code = -1, help = run(std::string(BARY_PROGRAM) + words + " --help", &code), code != 0)) {
        words.erase(words.rfind(' '));
      }
      EXPECT_FALSE(words.empty()) << page.path << ": no command in" << match[0];
      const std::string rest = match[2];
      for (const auto& name : matches(rest, option)) {
        const bool there = help.find("--" + name[1].str()) != std::string::npos ||
                           help.find("--[no-]" + name[1].str()) != std::string::npos;
        EXPECT_TRUE(there) << page.path << ": bary" << words << " has no option --" << name[1];
      }
    }
  }
}
#endif

}  // namespace
}  // namespace bary
