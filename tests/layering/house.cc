// SPDX-License-Identifier: Apache-2.0
#include "house.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

namespace bary::house {
namespace {

namespace fs = std::filesystem;
using Graph = std::map<std::string, std::set<std::string>>;

constexpr int kMostLines = 500;

// The floors a folder stands on directly; what those stand on is reached through them.
const std::map<std::string, std::vector<std::string>>& floors() {
  static const std::map<std::string, std::vector<std::string>> map = {
      {"base", {}},
      {"kernel", {"base"}},
      {"tensor", {"kernel"}},
      {"io", {"tensor"}},
      {"nn", {"io"}},
      {"model", {"nn"}},
      {"text", {"base"}},
      {"report", {"base"}},
      {"train", {"model", "text"}},
      {"generate", {"model", "text"}},
      {"inspect", {"model", "text"}},
      {"serve", {"generate"}},
      {"lab", {"train", "generate", "inspect", "report"}},
      {"bench", {"lab", "serve"}},
      {"cli", {"lab", "serve"}},
      {"program", {"bench", "cli"}},
      {"python", {"lab", "serve"}},
  };
  return map;
}

bool stands_below(const std::string& folder, const std::string& other) {
  for (const std::string& floor : floors().at(folder)) {
    if (floor == other || stands_below(floor, other)) return true;
  }
  return false;
}

bool starts_with(const std::string& s, const std::string& prefix) { return s.rfind(prefix, 0) == 0; }
bool ends_with(const std::string& s, const std::string& suffix) {
  return s.size() >= suffix.size() && s.compare(s.size() - suffix.size(), suffix.size(), suffix) == 0;
}
bool is_cpp(const std::string& path) { return ends_with(path, ".cc") || ends_with(path, ".h"); }
bool is_test(const std::string& path) { return ends_with(path, "_test.cc") || ends_with(path, "_test.h"); }
bool is_build_file(const std::string& path) {
  return ends_with(path, "CMakeLists.txt") || ends_with(path, ".cmake") || ends_with(path, "CMakePresets.json") ||
         ends_with(path, "Makefile");
}

// "src/bary/nn/linear.h" or "bary/nn/linear.h" -> "nn"; "" for a file that stands directly in src/bary (bary.h).
std::string folder_of(const std::string& path) {
  const std::string inside = path.substr(path.find("bary/") + 5);
  const size_t slash = inside.find('/');
  return slash == std::string::npos ? "" : inside.substr(0, slash);
}

std::vector<std::string> includes(const std::string& code) {
  static const std::regex line(R"(^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"])", std::regex::multiline);
  std::vector<std::string> out;
  for (std::sregex_iterator it(code.begin(), code.end(), line), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

// Appends one line for the first cycle found, its nodes in order.
void find_cycle(const Graph& graph, const std::string& kind, std::vector<std::string>& out) {
  std::set<std::string> done;
  std::vector<std::string> path;
  auto visit = [&](auto&& self, const std::string& node) -> bool {
    const auto on_path = std::find(path.begin(), path.end(), node);
    if (on_path != path.end()) {
      std::string text;
      for (auto it = on_path; it != path.end(); ++it) text += *it + " -> ";
      out.push_back(text + node + ": " + kind + " include each other in a circle; move what they share a floor down");
      return true;
    }
    if (done.count(node)) return false;
    path.push_back(node);
    const auto edges = graph.find(node);
    if (edges != graph.end()) {
      for (const std::string& next : edges->second) {
        if (self(self, next)) return true;
      }
    }
    path.pop_back();
    done.insert(node);
    return false;
  };
  for (const auto& node : graph) {
    if (visit(visit, node.first)) return;
  }
}

struct Word {
  const char* pattern;
  const char* why;
};

// The first banned word of each kind that the text holds.
void find_words(const std::string& path, const std::string& text, const std::vector<Word>& words,
                std::vector<std::string>& out) {
  for (const Word& word : words) {
    std::smatch match;
    if (std::regex_search(text, match, std::regex(word.pattern))) {
      const auto line = 1 + std::count(text.begin(), text.begin() + match.position(0), '\n');
      out.push_back(path + ":" + std::to_string(line) + ": \"" + match.str(0) + "\": " + word.why);
    }
  }
}

const std::vector<Word> kFastMath = {
    {"-Ofast|-ffast-math|-funsafe-math-optimizations|-ffinite-math-only|-fassociative-math|-freciprocal-math|"
     "-ffp-contract=(fast|on)",
     "fast-math breaks the promise of same bits; remove it"},
};
const std::vector<Word> kFastMathInCode = {
    {R"(#\s*pragma\s+(GCC\s+optimize|STDC\s+FP_CONTRACT\s+ON|clang\s+fp|float_control)|__attribute__\(\(optimize)",
     "changes floating-point rules in one place; remove it"},
};
const std::vector<Word> kSimd = {
    {R"(\bHWY_\w*|\bhwy(::|/|\b))", "SIMD words live in src/bary/kernel only; call a kernel"},
    {R"(\b__m(128|256|512)\w*|\b_mm\w*_(ps|pd|ss|sd|epi\d+)\b|\barm_neon\.h\b|\bdnnl\w*|\b(cblas|omp)\.h\b)",
     "SIMD, BLAS and second thread pools stay out of here; call a kernel"},
};
const std::vector<Word> kRandom = {
    {R"(std::\w+_distribution|std::random_device|std::mt19937\w*|\bs?rand\()",
     "differs between libraries or runs; use RandomStream of bary/base/random.h"},
};
const std::vector<Word> kPrinting = {
    {R"(std::c(out|err|log)\b|\bf?printf\(|\bfmt::print\(|\b(std::)?(exit|abort|terminate)\()",
     "the library never prints, exits or aborts; throw bary::Error or hand the text to a callback"},
};

void check_names(const SourceFile& file, std::vector<std::string>& out) {
  static const std::regex bad(R"((^|/)(utils?|common|misc|helpers?)([/.]|$)|[_-](utils?|misc|helpers?)[/.])");
  if (std::regex_search(file.path, bad)) {
    out.push_back(file.path + ": a name that says nothing; name it after its main type or verb");
  }
  const auto lines = std::count(file.text.begin(), file.text.end(), '\n');
  if (lines > kMostLines && !is_build_file(file.path)) {
    out.push_back(file.path + ": " + std::to_string(lines) + " lines, " + std::to_string(kMostLines) +
                  " at most; split it by what it is about");
  }
  if (is_build_file(file.path)) return;
  const std::string first = file.text.substr(0, file.text.find('\n', file.text.find('\n') + 1));
  if (first.find("SPDX-License-Identifier: Apache-2.0") == std::string::npos) {
    out.push_back(file.path + ": no SPDX-License-Identifier line at the top; add it");
  }
}

void check_edge(const SourceFile& file, const std::string& included, const std::set<std::string>& known, Graph& folders,
                Graph& headers, std::vector<std::string>& out) {
  if (!starts_with(included, "bary/")) return;
  if (!known.count("src/" + included)) {
    out.push_back(file.path + ": includes " + included + ", which does not exist; correct the path");
    return;
  }
  headers[file.path].insert("src/" + included);
  const std::string from = folder_of(file.path), to = folder_of(included);
  if (from == to || from.empty()) return;  // src/bary/bary.h gathers everything
  folders[from].insert(to);
  if (!floors().count(to) || !stands_below(from, to)) {
    out.push_back(file.path + ": includes " + included + ", but " + (to.empty() ? "bary.h" : to) +
                  " does not stand below " + from + "; move the code or hand it in as a callback");
  }
}

void check_module_source(const SourceFile& file, const std::string& code, std::vector<std::string>& out) {
  const std::string folder = folder_of(file.path);
  if (!folder.empty() && !floors().count(folder)) {
    out.push_back(file.path + ": folder " + folder + " has no floor in the house; add it to tests/layering/house.cc");
    return;
  }
  find_words(file.path, code, kFastMathInCode, out);
  if (folder != "kernel") find_words(file.path, code, kSimd, out);
  if (is_test(file.path)) return;
  if (folder != "base" || !ends_with(file.path, "random.cc")) find_words(file.path, code, kRandom, out);
  if (folder != "cli" && folder != "bench" && folder != "program") find_words(file.path, code, kPrinting, out);
}

}  // namespace

std::string without_comments(const std::string& code, Literals literals) {
  enum { text, quoted, line, block } state = text;
  char quote = 0;
  std::string out;
  for (size_t i = 0; i < code.size(); ++i) {
    const char c = code[i], next = i + 1 < code.size() ? code[i + 1] : '\0';
    if (state == line) {
      if (c == '\n') state = text;
    } else if (state == block) {
      if (c == '*' && next == '/') state = text, ++i;
      if (c != '\n') continue;
    } else if (state == quoted) {
      const bool ends = c == quote || c == '\n';
      if (literals == Literals::keep || ends) out += c;
      if (c == '\\' && ++i < code.size() && literals == Literals::keep) out += code[i];
      if (ends) state = text;
      continue;
    } else if (c == '/' && (next == '/' || next == '*')) {
      state = next == '/' ? line : block;
    } else if (c == '"' || (c == '\'' && (out.empty() || !std::isalnum(static_cast<unsigned char>(out.back()))))) {
      state = quoted, quote = c;  // 'x', but not the digit separator of 1'000
    }
    if (state == text || state == quoted || c == '\n') out += code[i];
  }
  return out;
}

std::vector<SourceFile> read_tree(const std::string& root) {
  std::vector<SourceFile> files;
  auto take = [&](const fs::path& path) {
    const std::string name = fs::relative(path, root).generic_string();
    if (!is_cpp(name) && !is_build_file(name) && !ends_with(name, ".py") && !ends_with(name, ".sh")) return;
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    files.push_back({name, text.str()});
  };
  for (const char* folder : {"src", "tests", "tools", "bench", "cmake", "examples"}) {
    const fs::path path = fs::path(root) / folder;
    if (!fs::exists(path)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) take(entry.path());
    }
  }
  for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "Makefile"}) {
    if (fs::exists(fs::path(root) / name)) take(fs::path(root) / name);
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> violations(const std::vector<SourceFile>& files) {
  std::vector<std::string> out;
  std::set<std::string> known;
  for (const SourceFile& file : files) known.insert(file.path);
  Graph folders, headers;
  for (const SourceFile& file : files) {
    check_names(file, out);
    if (is_build_file(file.path)) {
      // the one place that names the flags in order to refuse them
      if (file.path != "cmake/warnings.cmake") find_words(file.path, file.text, kFastMath, out);
    } else if (starts_with(file.path, "src/bary/") && is_cpp(file.path)) {
      check_module_source(file, without_comments(file.text, Literals::empty), out);
      if (!folder_of(file.path).empty() && !floors().count(folder_of(file.path))) continue;
      for (const std::string& included : includes(without_comments(file.text, Literals::keep)))
        check_edge(file, included, known, folders, headers, out);
    }
  }
  find_cycle(folders, "folders", out);
  find_cycle(headers, "files", out);
  return out;
}

}  // namespace bary::house
