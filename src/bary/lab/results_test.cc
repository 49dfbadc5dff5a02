// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/results.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/lab/page.h"
#include "bary/lab/runner.h"

namespace bary::lab {
namespace {

class LabResults : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Three rows that count how often they were measured
  Experiment counting(int revision = 1) {
    Experiment e;
    e.name = "counting";
    e.revision = revision;
    e.claims = {{"C", "three rows", "3", "three are there"}};
    e.units = [this](const Plan&) {
      std::vector<Unit> units;
      for (const char* key : {"row/1", "row/2", "row/3"})
        units.push_back({key, 1, [this](const Work& work) {
                           work.progress(0.5);
                           ++measured_;
                           return nlohmann::json{{"value", measured_}};
                         }});
      return units;
    };
    e.judge = [](const Rows& rows, const Plan&) {
      Findings f;
      f.say("C", std::to_string(rows.all().size()), verdict_of(rows.all().size() == 3));
      return f;
    };
    return e;
  }
  bool run(const Experiment& e, int64_t stop_at = -1) {
    Results results = Results::open(folder_, {});
    const Experiment* chosen[] = {&e};
    RunHooks hooks;
    hooks.stop = [&] { return measured_ == stop_at; };
    return run_experiments(chosen, {{}, {}, machine_}, results, hooks);
  }
  std::string refusal() {
    try {
      Results::open(folder_, {});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      return e.what();
    }
    return "(accepted)";
  }
  void write(const std::string& text) { write_file_atomic(folder_ / kResultsName, text); }

  std::filesystem::path folder_;
  int64_t measured_ = 0;
  nlohmann::json machine_ = {{"cpu", "one"}, {"cores", 2}, {"threads", 1}, {"isa", "avx2"}};
};

TEST_F(LabResults, FinishedRowsAreNotRunAgain) {
  const Experiment e = counting();
  EXPECT_FALSE(run(e, 2));  // stopped before the third
  EXPECT_EQ(measured_, 2);
  EXPECT_TRUE(run(e));
  EXPECT_EQ(measured_, 3);
  EXPECT_TRUE(run(e));
  EXPECT_EQ(measured_, 3);
  EXPECT_EQ(Results::load(folder_).rows(e).sample("row", "value").values, (std::vector<double>{1, 2, 3}));
}

TEST_F(LabResults, ARowThatIsMissingIsToldBesideTheVerdict) {
  const Experiment e = counting();
  run(e, 2);
  EXPECT_EQ(judge(e, Results::load(folder_)).findings.notes.at(0),
            "2 of 3 rows are there; the verdicts speak of these.");
  run(e);
  EXPECT_TRUE(judge(e, Results::load(folder_)).findings.notes.empty());
}

TEST_F(LabResults, RowsOfAnOlderRecipeAreMeasuredAnew) {
  run(counting(1));
  const Experiment e = counting(2);
  EXPECT_TRUE(Results::load(folder_).outdated(e));
  EXPECT_TRUE(Results::load(folder_).rows(e).all().empty());
  run(e);
  EXPECT_EQ(measured_, 6);
  EXPECT_FALSE(Results::load(folder_).outdated(e));
}

TEST_F(LabResults, ARowThatThrowsLosesNoneBeforeIt) {
  Experiment e = counting();
  auto units = e.units;
  e.units = [units](const Plan& plan) {
    auto all = units(plan);
    all[1].run = [](const Work&) -> nlohmann::json { fail("this one breaks"); };
    return all;
  };
  EXPECT_THROW(run(e), Error);
  EXPECT_EQ(Results::load(folder_).rows(e).all().size(), 1u);
}

TEST_F(LabResults, ATrainingThatBrokeOffIsKeptAndCountsAgainstItsClaims) {
  Experiment e = counting();
  auto units = e.units;
  e.units = [units](const Plan& plan) {
    auto all = units(plan);
    all[1].run = [](const Work&) -> nlohmann::json { fail(ErrorKind::numeric, "broke off at update 7"); };
    return all;
  };
  e.judge = [](const Rows& rows, const Plan&) {
    Findings f;
    f.say("C", "", within(rows.sample("row", "value"), 0, 10));
    return f;
  };
  EXPECT_TRUE(run(e));
  EXPECT_TRUE(run(e));
  EXPECT_EQ(measured_, 2);  // the two others, once
  const Rows rows = Results::load(folder_).rows(e);
  EXPECT_TRUE(rows.run("row/2"));
  EXPECT_FALSE(rows.has("row/2"));
  EXPECT_TRUE(rows.at("row/2").is_null());
  EXPECT_EQ(rows.sample("row", "value").n(), 3);
  const Judged j = judge(e, Results::load(folder_));
  EXPECT_EQ(j.findings.outcomes.at(0).verdict, Verdict::fails);
  EXPECT_EQ(j.findings.notes.at(0), "row/2 broke off at update 7; it counts against every claim it takes part in.");
}

TEST_F(LabResults, APageNamesWhatWasNotMeasuredAndWhatIsOutdated) {
  const Experiment old = counting(1);
  Experiment now = counting(2), other = counting();
  other.name = "another";
  run(old);
  const Results results = Results::load(folder_);
  const std::vector<Judged> all{judge(now, results), judge(other, results)};
  for (const std::string& page : {html_page(all, {}), markdown_report(all, {}, "plots").text}) {
    EXPECT_NE(page.find("Not measured yet: another."), std::string::npos) << page;
    EXPECT_NE(page.find("bary lab run counting measures it anew"), std::string::npos) << page;
  }
}

TEST_F(LabResults, ARowIsALineAndEachMachineIsNamedOnce) {
  const Experiment e = counting();
  run(e, 2);
  const std::string before = read_file(folder_ / kResultsName);
  machine_["cpu"] = "another \"one\"";
  run(e);
  const std::string after = read_file(folder_ / kResultsName);
  const size_t first = before.find("\n\"row/1\": {"), end = before.find("\n", before.find("\n\"row/2\": {") + 1);
  ASSERT_NE(first, std::string::npos) << before;
  EXPECT_NE(after.find(before.substr(first, end - first) + ",\n\"row/3\": {"), std::string::npos) << after;
  const Judged j = judge(e, Results::load(folder_));
  EXPECT_EQ(j.machines.size(), 2u);
  EXPECT_NE(html_page({j}, {}).find("one, 2 cores, 1 thread, avx2; another &quot;one&quot;, 2 cores"),
            std::string::npos)
      << html_page({j}, {});
}

TEST_F(LabResults, AnotherFormatIsRefusedWithTheReason) {
  run(counting());
  std::string text = read_file(folder_ / kResultsName);
  text.replace(text.find("\"format\": 2"), 11, "\"format\": 7");
  write(text);
  EXPECT_NE(refusal().find("written in format 7, this version reads format 2"), std::string::npos) << refusal();
}

TEST_F(LabResults, AnotherBudgetOrTextIsNotMixedIn) {
  run(counting());
  EXPECT_THROW(Results::open(folder_, {Budget::chapter, "tinyshakespeare", ""}), Error);
  EXPECT_THROW(Results::open(folder_, {Budget::quick, "book.txt", ""}), Error);
  Results r = Results::open(folder_, {});
  r.set_corpus_sha256("aa");
  EXPECT_THROW(r.set_corpus_sha256("bb"), Error);
}

TEST_F(LabResults, DamageIsRefusedAtEveryByte) {
  run(counting());
  const std::string whole = read_file(folder_ / kResultsName);
  for (size_t n = 0; n + 2 < whole.size(); n += 7) {
    write(whole.substr(0, n));
    EXPECT_NE(refusal(), "(accepted)") << "cut after " << n << " bytes";
  }
  for (const char* text : {"[]", "3", "{\"format\": 2}", "{\"format\": 2, \"budget\": \"huge\", \"corpus\": \"\"}",
                           "{\"format\": 2, \"budget\": \"quick\", \"corpus\": \"a\", \"corpus_sha256\": \"\", "
                           "\"experiments\": {\"x\": {\"revision\": 1, \"machines\": [], \"rows\": [1]}}}",
                           "{\"format\": 2, \"budget\": \"quick\", \"corpus\": \"a\", \"corpus_sha256\": \"\", "
                           "\"experiments\": {\"x\": {\"revision\": 1, \"machines\": [null], \"rows\": {}}}}"}) {
    write(text);
    EXPECT_NE(refusal(), "(accepted)") << text;
  }
}

TEST_F(LabResults, SeedsAreReadFromTheKeys) {
  const Experiment e = counting();
  run(e);
  EXPECT_EQ(Results::load(folder_).seeds(e), 3);
}

TEST_F(LabResults, NothingMeasuredYetSaysWhatToRun) {
  try {
    Results::load(folder_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("bary lab run"), std::string::npos);
  }
}

}  // namespace
}  // namespace bary::lab
