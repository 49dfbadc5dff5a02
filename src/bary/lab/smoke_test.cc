// SPDX-License-Identifier: Apache-2.0
// Every experiment runs through at the smallest budget, judges what it measured and nothing else, and copes with rows
// that are missing.
#include <gtest/gtest.h>

#include <set>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/random.h"
#include "bary/lab/lost_figures_test.h"
#include "bary/lab/machine.h"
#include "bary/lab/page.h"
#include "bary/lab/runner.h"

namespace bary::lab {
namespace {

// Some 200,000 characters of made-up words, enough for windows of 256 tokens in both parts
std::string made_up_text() {
  std::vector<std::string> words;
  RandomStream random(1, Purpose::test);
  for (int i = 0; i < 2000; ++i) {
    std::string w;
    for (uint64_t n = 2 + random.below(7); n > 0; --n) w += static_cast<char>('a' + random.below(26));
    words.push_back(w);
  }
  std::string text;
  while (text.size() < 200'000) {
    const double u = random.uniform();
    text += words[static_cast<size_t>(u * u * 2000)] + (random.below(9) ? " " : ".\n");
  }
  return text;
}

// What could not be measured holds nothing; claims of counts and bits have nothing to lose.
void expect_nothing_holds_without_figures(const Experiment& e, const Rows::Map& rows) {
  const std::set<std::string> of_counts{
      "M1",         "M1 biases",     "M1 built",   "M2",     "M2 table", "Q1",       "C4 bits",    "C4 cost",
      "Q6 weights", "W7 parameters", "M5 look-up", "N4 off", "Q2 names", "Q3 alone", "Q3 pattern", "M3 parameters"};
  Rows::Map lost = rows, stopped = rows;
  for (auto& [key, row] : lost) lose_figures(row);
  for (auto& [key, row] : stopped) row = {{"stopped", "broke off"}};
  for (const Budget budget : {Budget::smoke, Budget::quick, Budget::chapter}) {
    const Plan plan{budget, 1, false};
    for (const Outcome& o : e.judge(Rows(lost), plan).outcomes)
      EXPECT_TRUE(o.verdict != Verdict::holds || of_counts.contains(o.id)) << o.id << ": " << o.measured;
    for (const Outcome& o : e.judge(Rows(stopped), plan).outcomes)
      EXPECT_NE(o.verdict, Verdict::holds) << o.id << ": " << o.measured;
  }
}

class LabSmoke : public testing::TestWithParam<std::string> {};

TEST_P(LabSmoke, RunsAndJudges) {
  const Experiment& e = *choose_experiments({GetParam()}).front();
  const auto folder = std::filesystem::path(testing::TempDir()) / ("lab-" + GetParam());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  write_file_atomic(folder / "text.txt", made_up_text());
  RunOptions options;
  options.plan = {Budget::smoke, 1, true};
  options.data.dataset = (folder / "text.txt").string();
  options.machine = this_machine();
  Results results = Results::open(folder, {Budget::smoke, options.data.dataset, ""});
  const Experiment* chosen[] = {&e};
  ASSERT_TRUE(run_experiments(chosen, options, results, {}));
  const Judged j = judge(e, results);
  std::set<std::string> said;
  for (const Outcome& o : e.judge(results.rows(e), options.plan).outcomes)
    EXPECT_TRUE(said.insert(o.id).second) << o.id << " is said twice";
  for (const Claim& c : e.claims) EXPECT_TRUE(said.contains(c.id)) << "nothing is said of " << c.id;
  EXPECT_FALSE(findings_text(j, {}).empty());
  const std::string page = html_page({j}, results.setting());
  EXPECT_NE(page.find("id=\"" + e.name + "\""), std::string::npos);
  EXPECT_EQ(page.find("http://", page.find("<body>")), page.find("http://www.w3.org/2000/svg"));
  // any one row missing
  const Rows all = results.rows(e);
  for (const auto& [key, row] : all.all()) {
    Rows::Map some = all.all();
    some.erase(key);
    EXPECT_NO_THROW(e.judge(Rows(some), options.plan)) << "without " << key;
  }
  expect_nothing_holds_without_figures(e, all.all());
  EXPECT_EQ(j.findings.outcomes.size(), e.claims.size());
  if (all.all().size() > 1) {  // one row alone: a claim none speaks of is undecided, not gone
    Results one = Results::open(folder / "one", {Budget::smoke, options.data.dataset, ""});
    std::filesystem::create_directories(folder / "one");
    one.add(e, all.all().begin()->first, all.all().begin()->second, options.machine);
    EXPECT_EQ(judge(e, one).findings.outcomes.size(), e.claims.size());
  }
  std::filesystem::remove_all(folder);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Experiment& e : experiments()) all.push_back(e.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Lab, LabSmoke, testing::ValuesIn(names()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(LabList, EveryClaimHasASentenceAndARule) {
  std::set<std::string> seen;
  for (const Experiment& e : experiments()) {
    EXPECT_TRUE(seen.insert(e.name).second);
    EXPECT_FALSE(e.claims.empty()) << e.name;
    std::set<std::string> ids;
    for (const Claim& c : e.claims) {
      EXPECT_TRUE(ids.insert(c.id).second) << e.name << " " << c.id;
      EXPECT_FALSE(c.says.empty() || c.rule.empty()) << e.name << " " << c.id;
    }
    for (Budget b : {Budget::smoke, Budget::quick, Budget::chapter}) {
      std::set<std::string> keys;
      for (const Unit& u : e.units({b, 3, false})) {
        EXPECT_TRUE(keys.insert(u.key).second) << e.name << " " << u.key;
        EXPECT_GT(u.gflop, 0) << e.name << " " << u.key;
      }
      EXPECT_FALSE(keys.empty()) << e.name;
    }
  }
}

TEST(LabList, AnUnknownNameComesWithTheNearest) {
  try {
    choose_experiments({"lader"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("ladder"), std::string::npos) << e.what();
  }
}

TEST(LabList, AllIsAll) { EXPECT_EQ(choose_experiments({"all"}).size(), experiments().size()); }

}  // namespace
}  // namespace bary::lab
