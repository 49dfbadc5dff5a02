// SPDX-License-Identifier: Apache-2.0
// The promise of same bits on the chapter's own model at its own size: one block, 64 x 128 tokens, 128 channels, a
// vocabulary of 1,024; fifty steps of the real program, run in every way that must not matter.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bary/base/random.h"
#include "program.h"

namespace bary::runs_test {
namespace {

// 3,000 made-up words, the first ones frequent: enough different text for 1,024 tokens.
std::string wordy_text() {
  RandomStream random(1, Purpose::test);
  std::vector<std::string> words(3000);
  for (std::string& word : words) {
    for (uint64_t syllables = 1 + random.below(3); syllables-- > 0;) {
      word += "bcdfghklmnprstvw"[random.below(16)];
      word += "aeiou"[random.below(5)];
    }
  }
  std::string text;
  while (text.size() < 300000) {
    const double u = random.uniform();
    text += words[static_cast<size_t>(u * u * u * 3000)] + (random.below(12) == 0 ? "\n" : " ");
  }
  return text;
}

class SlowChapterModel : public testing::Test {
 protected:
  SlowChapterModel() { work.write("text.txt", wordy_text()); }
  std::string command(const std::string& out_dir, const std::string& more) const {
    return " train text.txt --max_iters 50 --eval_interval 0 --eval_iters 2 --json --out_dir " + out_dir + " " + more;
  }
  std::string weights(const std::string& out_dir, const std::string& more = "") {
    Ran r = shell(work.path(), "bary" + command(out_dir, more));
    EXPECT_EQ(r.code, 0) << r.err;
    if (r.code != 0) return "no weights: " + out_dir;
    const auto result = nlohmann::json::parse(r.out);
    EXPECT_EQ(result["steps"], 50);
    return result["weights_sha256"].get<std::string>();
  }
  Workplace work;
};

TEST_F(SlowChapterModel, HasTheSameWeightsHoweverFiftyStepsAreRun) {
  const std::string alone = weights("alone", "--threads 1");
  const auto config = nlohmann::json::parse(work.read("alone/last/config.json"));
  ASSERT_EQ(config["vocab_size"], 1024);
  ASSERT_EQ(config["n_embd"], 128);
  EXPECT_EQ(weights("two", "--threads 2"), alone);
  EXPECT_EQ(weights("three", "--threads 3"), alone);
  EXPECT_EQ(weights("watched", "--eval_interval 10 --sample_interval 20 --sample_tokens 30"), alone);
  EXPECT_EQ(weights("halves", "--batch_size 32 --gradient_accumulation_steps 2"), alone);
  EXPECT_NE(weights("other", "--seed 5"), alone) << "so that the equalities are worth something";

  Ran killed =
      shell(work.path(), "$PROGRAM" + command("killed", "--save_interval 20") +
                             " & pid=$!\n"
                             "for i in $(seq 3000); do grep -qs '\"step\": [24]0' killed/last/state.json && break; "
                             "sleep 0.02; done\n"
                             "kill -9 $pid; wait $pid; true");
  ASSERT_EQ(killed.code, 0) << killed.err;
  const auto state = nlohmann::json::parse(work.read("killed/last/state.json"));
  ASSERT_TRUE(state["step"] == 20 || state["step"] == 40) << state;
  EXPECT_EQ(weights("killed", "--init_from resume"), alone);
}

}  // namespace
}  // namespace bary::runs_test
