// SPDX-License-Identifier: Apache-2.0
// The page that the project keeps, docs/lab-chapter, against the rows beside it; and what is said of real rows, three
// seeds of each, when one of them is spoiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bary/base/file.h"
#include "bary/lab/lost_figures_test.h"
#include "bary/lab/page.h"

namespace bary::lab {
namespace {

const std::filesystem::path kKept = std::filesystem::path(BARY_SOURCE_DIR) / "docs" / "lab-chapter";

TEST(KeptPage, IsWhatItsRowsSay) {
  const Results results = Results::load(kKept);
  std::vector<Judged> all;
  for (const Experiment& e : experiments()) all.push_back(judge(e, results));
  const MarkdownReport made = markdown_report(all, results.setting(), "plots");
  EXPECT_TRUE(made.text == read_file(kKept / "lab.md")) << "make it again: bary lab report --out_dir docs/lab-chapter";
  EXPECT_TRUE(csv_report(all) == read_file(kKept / "lab.csv")) << "make it again: bary lab report ...";
  std::set<std::string> pictures;
  for (const auto& entry : std::filesystem::directory_iterator(kKept / "plots"))
    pictures.insert(entry.path().filename().string());
  for (const auto& [name, svg] : made.pictures) {
    EXPECT_TRUE(pictures.erase(name) == 1 && svg == read_file(kKept / "plots" / name)) << name;
  }
  EXPECT_TRUE(pictures.empty()) << "left over: " << *pictures.begin();
}

std::set<std::string> holding(const Experiment& e, const Rows::Map& rows) {
  std::set<std::string> ids;
  for (const Outcome& o : e.judge(Rows(rows), {Budget::chapter, 3, false}).outcomes)
    if (o.verdict == Verdict::holds) ids.insert(o.id);
  return ids;
}

// A training that broke off speaks for no claim that would fall without its figures.
TEST(KeptPage, ASeedThatBrokeOffIsNoBetterThanOneWithoutFigures) {
  const Results results = Results::load(kKept);
  size_t fallen = 0;
  for (const Experiment& e : experiments()) {
    const Rows::Map whole = results.rows(e).all();
    const std::set<std::string> all = holding(e, whole);
    for (const auto& [key, row] : whole) {
      if (!key.ends_with("/2")) continue;
      Rows::Map lost = whole, stopped = whole;
      lose_figures(lost[key]);
      stopped[key] = {{"stopped", "broke off"}};
      const std::set<std::string> without = holding(e, lost), broken = holding(e, stopped);
      for (const std::string& id : broken) EXPECT_TRUE(without.contains(id)) << e.name << ", " << key << ": " << id;
      fallen += all.size() - broken.size();
    }
  }
  EXPECT_GT(fallen, 50u);  // or nothing was spoiled
}

}  // namespace
}  // namespace bary::lab
