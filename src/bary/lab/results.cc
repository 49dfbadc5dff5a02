// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/results.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/lab/machine.h"
#include "bary/text/corpus_shakespeare.h"

namespace bary::lab {
namespace {

constexpr std::pair<Budget, const char*> kBudgets[] = {
    {Budget::smoke, "smoke"}, {Budget::quick, "quick"}, {Budget::chapter, "chapter"}};

Budget budget_named(const std::string& name, const std::string& what) {
  for (auto [budget, text] : kBudgets)
    if (name == text) return budget;
  fail("{}: budget '{}' is not one of smoke, quick, chapter; was the file edited? Give another --out_dir", what, name);
}

}  // namespace

std::string budget_text(Budget b) {
  for (auto [budget, text] : kBudgets)
    if (b == budget) return text;
  return "?";
}

bool Setting::own_text() const { return !corpus_sha256.empty() && corpus_sha256 != kShakespeareSha256; }

Results Results::load(const std::filesystem::path& folder) {
  Results r;
  r.folder_ = folder;
  const auto file = folder / kResultsName;
  BARY_CHECK(std::filesystem::exists(file), "{} is not there; measure first: bary lab run all --out_dir {}",
             file.string(), folder.string());
  r.read(file);
  return r;
}

Results Results::open(const std::filesystem::path& folder, const Setting& expected) {
  Results r;
  r.folder_ = folder;
  r.setting_ = expected;
  if (!std::filesystem::exists(folder / kResultsName)) return r;
  r.read(folder / kResultsName);
  BARY_CHECK(r.setting_.budget == expected.budget && r.setting_.corpus == expected.corpus,
             "{}: its rows were measured with budget {} on {}, now asked are {} on {}; give another --out_dir, they "
             "can't be mixed",
             (folder / kResultsName).string(), budget_text(r.setting_.budget), r.setting_.corpus,
             budget_text(expected.budget), expected.corpus);
  return r;
}

void Results::read(const std::filesystem::path& file) {
  const std::string what = file.string();
  const Json j = parse_json(read_file(file), what);
  BARY_CHECK(j.is_object() && j.contains("format") && j["format"].is_number_integer(),
             "{}: no results of a lab; give another --out_dir", what);
  BARY_CHECK(j["format"] == kResultsFormat,
             "{}: written in format {}, this version reads format {}: its rows may mean something else and are not "
             "used; give another --out_dir to measure anew",
             what, j["format"].dump(), kResultsFormat);
  setting_.budget = budget_named(json_string(j, "budget", what), what);
  setting_.corpus = json_string(j, "corpus", what);
  setting_.corpus_sha256 = json_string(j, "corpus_sha256", what);
  const Json& all = json_member(j, "experiments", what);
  BARY_CHECK(all.is_object(), "{}: \"experiments\" is not an object; give another --out_dir", what);
  for (const auto& [name, part] : all.items()) {
    const std::string where = what + ", " + name;
    Part p;
    p.revision = static_cast<int>(json_integer(part, "revision", where));
    p.machines = json_member(part, "machines", where);
    check_machines(p.machines, where);
    const Json& rows = json_member(part, "rows", where);
    BARY_CHECK(rows.is_object(), "{}: \"rows\" is not an object; give another --out_dir", where);
    for (const auto& [key, row] : rows.items()) p.rows[key] = row;
    parts_[name] = std::move(p);
  }
}

void Results::write() const {
  auto line = [](const Json& j) { return dump_json(j, -1); };
  std::vector<std::string> experiments;
  for (const auto& [name, p] : parts_) {
    std::vector<std::string> rows;
    for (const auto& [key, row] : p.rows) rows.push_back(fmt::format("{}: {}", line(key), line(row)));
    experiments.push_back(fmt::format("{}: {{\"revision\": {}, \"machines\": {}, \"rows\": {{\n{}\n}}}}", line(name),
                                      p.revision, line(p.machines), fmt::join(rows, ",\n")));
  }
  write_file_atomic(
      folder_ / kResultsName,
      fmt::format("{{\"format\": {}, \"version\": {}, \"budget\": {}, \"corpus\": {}, \"corpus_sha256\": {},\n"
                  "\"experiments\": {{\n{}\n}}}}\n",
                  kResultsFormat, line(BARY_VERSION), line(budget_text(setting_.budget)), line(setting_.corpus),
                  line(setting_.corpus_sha256), fmt::join(experiments, ",\n")));
}

void Results::set_corpus_sha256(const std::string& sha256) {
  BARY_CHECK(setting_.corpus_sha256.empty() || setting_.corpus_sha256 == sha256,
             "{}: its rows were measured on another text (SHA-256 {}..., this one has {}...); give another --out_dir",
             (folder_ / kResultsName).string(), setting_.corpus_sha256.substr(0, 16), sha256.substr(0, 16));
  setting_.corpus_sha256 = sha256;
}

Rows Results::rows(const Experiment& e) const {
  auto p = parts_.find(e.name);
  return p == parts_.end() || p->second.revision != e.revision ? Rows() : Rows(p->second.rows);
}

bool Results::outdated(const Experiment& e) const {
  auto p = parts_.find(e.name);
  return p != parts_.end() && p->second.revision != e.revision;
}

void Results::add(const Experiment& e, const std::string& key, Json row, const Json& machine) {
  Part& p = parts_[e.name];
  if (p.revision != e.revision) p = {e.revision, {}, Json::array()};
  p.rows[key] = std::move(row);
  if (std::find(p.machines.begin(), p.machines.end(), machine) == p.machines.end()) p.machines.push_back(machine);
  write();
}

Json Results::machines(const Experiment& e) const {
  auto p = parts_.find(e.name);
  return p == parts_.end() ? Json::array() : p->second.machines;
}

int64_t Results::seeds(const Experiment& e) const {
  int64_t most = 0;
  const Rows mine = rows(e);
  for (const auto& [key, row] : mine.all()) {
    const size_t slash = key.rfind('/');
    if (slash == std::string::npos) continue;
    int64_t seed = 0;
    for (size_t i = slash + 1; i < key.size() && key[i] >= '0' && key[i] <= '9'; ++i) seed = seed * 10 + (key[i] - '0');
    most = std::max(most, seed);
  }
  return std::max<int64_t>(most, 1);
}

}  // namespace bary::lab
