// SPDX-License-Identifier: Apache-2.0
// An encoder from a shell: trained on gaps, it fills them, turns texts into vectors and refuses to write.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace bary::runs_test {
namespace {

const std::string kModel =
    " --block_size 16 --n_embd 32 --n_head 2 --batch_size 16 --eval_iters 4 --eval_interval 0 "
    "--learning_rate 5e-3 --json --max_iters ";
const std::string kSmall = " --vocab_size 300" + kModel;

class Encoder : public ::testing::Test {
 protected:
  void SetUp() override {
    work_.write("text.txt", made_up_text(400));
    const Ran r = shell(work_.path(), "bary train text.txt --arch encoder --out_dir run" + kSmall + "20");
    ASSERT_EQ(r.code, 0) << r.err;
    trained_ = nlohmann::json::parse(r.out);
  }
  void refused(const std::string& line, const std::vector<std::string>& names) {
    const Ran r = shell(work_.path(), line);
    EXPECT_EQ(r.code, 2) << line << "\n" << r.err;
    for (const std::string& n : names)
      EXPECT_NE(r.err.find(n), std::string::npos) << "wanted \"" << n << "\" in: " << r.err;
    EXPECT_EQ(r.out, "");
  }
  std::string printed(const std::string& line, const std::string& input) {
    work_.write("input", input);
    const Ran r = shell(work_.path(), line + " --json < input");
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  }
  nlohmann::json json(const std::string& line) { return nlohmann::json::parse(printed(line, "")); }
  std::vector<nlohmann::json> json_lines(const std::string& line, const std::string& input = "") {
    std::vector<nlohmann::json> objects;
    std::istringstream lines(printed(line, input));
    for (std::string one; std::getline(lines, one);) objects.push_back(nlohmann::json::parse(one));
    return objects;
  }
  Workplace work_;
  nlohmann::json trained_;
};

TEST_F(Encoder, FillsGaps) {
  const Ran r = shell(work_.path(), "bary train text.txt --arch encoder --out_dir learned" + kSmall + "600");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto learned = nlohmann::json::parse(r.out);
  EXPECT_GT(learned["val_accuracy"].get<double>(), 0.5);
  EXPECT_LT(learned["val_loss"].get<double>(), 0.5 * trained_["val_loss"].get<double>());
  // on other gaps of the same text: 127 of them, so within 5 standard deviations of sqrt(2 p (1 - p) / 127)
  EXPECT_NEAR(json("bary eval learned")["accuracy"].get<double>(), learned["val_accuracy"].get<double>(), 0.31);
  const auto sure = json("bary fill learned 'the cat did [MASK] cross the street'");
  EXPECT_EQ(sure["filled"], "the cat did not cross the street");
  EXPECT_GT(sure["gaps"][0]["proposals"][0]["probability"].get<double>(), 0.9);
}

TEST_F(Encoder, ShowsProposals) {
  const auto filled = json("bary fill run 'the [MASK] and the [MASK]' --top_k 3");
  ASSERT_EQ(filled["gaps"].size(), 2u);
  double last = 1;
  for (const auto& p : filled["gaps"][0]["proposals"]) {
    EXPECT_LE(p["probability"].get<double>(), last);
    last = p["probability"].get<double>();
    EXPECT_EQ(p["text"].get<std::string>()[0], ' ');
  }
  EXPECT_EQ(filled["gaps"][0]["proposals"].size(), 3u);
  const std::string text = filled["filled"];
  EXPECT_EQ(text, "the" + filled["gaps"][0]["proposals"][0]["text"].get<std::string>() + " and the" +
                      filled["gaps"][1]["proposals"][0]["text"].get<std::string>());
  const Ran shown = shell(work_.path(), "bary fill run 'the [MASK] and the [MASK]' --threads 1");
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find("probability"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find(text + "\n"), std::string::npos) << shown.out;
}

TEST_F(Encoder, ComparesTexts) {
  const Ran table = shell(work_.path(), "bary embed run 'the cat' 'the cat' 'a far longer text'");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("1.0000  1.0000"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\"a far longer text\""), std::string::npos) << table.out;
  const auto three = json_lines("bary embed run 'the cat' --text_file -", "a far longer text\r\nthe cat\n");
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[1]["text"], "a far longer text");
  EXPECT_EQ(three[0]["vector"].size(), 32u);
  EXPECT_EQ(three[0], three[2]);
  EXPECT_EQ(json_lines("bary embed run 'the cat'")[0], three[0]) << "alone or in company";
  EXPECT_NE(json_lines("bary embed run 'the cat' --pooling first")[0]["vector"], three[0]["vector"]);
}

TEST_F(Encoder, RefusesWhatItCannotDo) {
  refused("bary generate run --prompt 'the '", {"encoder", "sees the whole text", "bary fill"});
  refused("bary fill run 'no gap here'", {"no gap", "[MASK]"});
  refused("bary fill run ''", {"empty"});
  refused("bary fill run", {"1 came", "[MASK]"});
  refused("bary fill run the [MASK]", {"3 came", "quotes"});
  refused("bary fill run \"[MASK] $(seq -s ' ' 40)\"", {"tokens", "16 positions"});
  refused("bary fill nowhere '[MASK]'", {"nowhere", "no checkpoint"});
  refused("bary embed run alone", {"1 texts came", "two or more"});
  refused("bary embed run one ''", {"text 2 is empty"});
  refused("bary embed", {"no model"});
  refused("bary eval run --partial", {"--partial", "encoder"});
  // a tokenizer that was made without [MASK], and a model that looks back only
  refused(
      "bary tokenizer train text.txt --vocab_size 280 --out tok.json >made && bary train text.txt --arch encoder "
      "--tokenizer tok.json --out_dir other" +
          kModel + "20",
      {"no token [MASK]", "--tokenizer"});
  const Ran r = shell(work_.path(), "bary train text.txt --out_dir back" + kSmall + "20");
  ASSERT_EQ(r.code, 0) << r.err;
  refused("bary fill back 'the [MASK]'", {"arch=decoder", "--arch encoder"});
  refused("bary embed back one two --pooling first", {"arch=decoder", "mean"});
  EXPECT_EQ(shell(work_.path(), "bary embed back one two").code, 0) << "means are for any model";
}

TEST_F(Encoder, ATokenizerThatHasTheMaskServes) {
  const Ran r =
      shell(work_.path(),
            "bary train text.txt --arch encoder --tokenizer run/last/tokenizer.json --out_dir again" + kModel + "20");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out)["weights_sha256"], trained_["weights_sha256"]);
}

}  // namespace
}  // namespace bary::runs_test
