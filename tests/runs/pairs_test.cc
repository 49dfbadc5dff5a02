// SPDX-License-Identifier: Apache-2.0
// Models of pairs from a shell: trained, resumed, evaluated, asked; and what they refuse.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "program.h"

namespace bary::runs_test {
namespace {

const std::string kModel =
    " --model copy --n_embd 32 --n_layer 1 --batch_size 32 --eval_iters 32 --eval_interval 0 --learning_rate 5e-3 "
    "--grad_clip 1 --json ";
const std::string kSmall = kModel + "--max_length 6 ";

class Pairs : public ::testing::Test {
 protected:
  nlohmann::json json(const std::string& line) {
    const Ran r = shell(work_.path(), line);
    EXPECT_EQ(r.code, 0) << line << "\n" << r.err;
    return nlohmann::json::parse(r.out, nullptr, false);
  }
  void refused(const std::string& line, const std::vector<std::string>& names) {
    const Ran r = shell(work_.path(), line);
    EXPECT_EQ(r.code, 2) << line << "\n" << r.err;
    for (const std::string& n : names)
      EXPECT_NE(r.err.find(n), std::string::npos) << "wanted \"" << n << "\" in: " << r.err;
    EXPECT_EQ(r.out, "");
  }
  std::string weights(const std::string& line) { return json(line)["weights_sha256"].get<std::string>(); }
  Workplace work_;
};

TEST_F(Pairs, LearnAnswerAndAreMeasured) {
  const auto trained = json("bary train --task copy --out_dir run --max_iters 400" + kSmall);
  EXPECT_GT(trained["val_exact_match"].get<double>(), 0.9);
  const auto answer = json("bary translate run --source abc --beam 3 --n_best 2 --json")[0];
  ASSERT_EQ(answer["answers"].size(), 2u);
  EXPECT_EQ(answer["answers"][0]["text"], "abc");
  EXPECT_TRUE(answer["answers"][0]["ended"].get<bool>());
  EXPECT_GE(answer["answers"][0]["score"].get<double>(), answer["answers"][1]["score"].get<double>());
  const auto asked = json("bary translate run --source abc --target abc --json");
  EXPECT_EQ(asked["log_probability"], answer["answers"][0]["log_probability"]) << "the same to the last bit";
  const auto scores = json("bary eval run --count 50 --json")["scores"];
  EXPECT_GT(scores[0]["exact_match"].get<double>(), 0.8);
  EXPECT_EQ(scores[1]["exact_match"], 1.0) << "copying is what copying the source does";
  work_.write("one.tsv", "abc\tabc\n");
  const Ran judged = shell(work_.path(), "bary eval run --data one.tsv");
  EXPECT_NE(judged.out.find(" on 1 pair of one.tsv\n"), std::string::npos) << judged.out << judged.err;
  EXPECT_NE(shell(work_.path(), "bary eval run --count 50").out.find(" on 50 held-out pairs of copy\n"),
            std::string::npos);
  refused("bary eval run --data one.tsv --max_length 3", {"--max_length", "one.tsv"});
  refused("bary eval run --task roman-arabic --min_length 3", {"--min_length", "roman-arabic"});
  const Ran shown = shell(work_.path(), "bary translate run --source abc --attention");
  EXPECT_EQ(shown.out.substr(0, 4), "abc\n");
  EXPECT_NE(shown.out.find("block 0: what each token of the answer read"), std::string::npos);
  const auto read = json("bary translate run --source abc --attention --json")[0]["attention"];
  EXPECT_EQ(read["source_tokens"].size(), 4u) << "the end included";
  ASSERT_EQ(read["answer_tokens"], (std::vector<std::string>{"a", "b", "c", "<eos>"}));
  ASSERT_EQ(read["blocks"].size(), 1u);
  ASSERT_EQ(read["blocks"][0].size(), 4u) << "heads";
  ASSERT_EQ(read["blocks"][0][1].size(), 4u);
  double sum = 0;
  for (double share : read["blocks"][0][1][3]) sum += share;
  EXPECT_NEAR(sum, 1, 1e-5);
  const Ran lines = shell(work_.path(), "printf 'abc\\nba\\n' | bary translate run --source_file -");
  EXPECT_EQ(lines.out, "abc\nba\n");
  refused("printf 'abc\\n\\nba\\n' | bary translate run --source_file -", {"standard input, line 2", "blank"});
}

TEST_F(Pairs, EveryArrangementResumesBitForBit) {
  work_.write("pairs.tsv", "one two\ttwo one\nthree\tthree\nfour five six\tsix five four\nseven\tseven\n");
  const std::string pairs = " --task pairs --data pairs.tsv --val_fraction 0.25" + kModel;
  const std::vector<std::string> arrangements{
      "",
      " --dropout 0.1 --label_smoothing 0.1 --share_embeddings true --tie_embeddings true",
      " --batch_tokens 64",
      " --arch lstm --attend additive",
      " --arch gru --truncate 4",
      " --arch decoder --pos learned",
      " --arch decoder --pos learned --prefix true"};
  int n = 0;
  for (const std::string& a : arrangements) {
    const std::string run = "run" + std::to_string(n++), half = "half" + std::to_string(n);
    const std::string whole = weights("bary train --max_iters 6 --threads 1 --out_dir " + run + pairs + a);
    json("bary train --max_iters 3 --threads 2 --out_dir " + half + pairs + a);
    EXPECT_EQ(weights("bary train --init_from resume --max_iters 6 --threads 3 --json --out_dir " + half), whole) << a;
  }
}

// One table for source, target and head is used three times in a step.
TEST_F(Pairs, BatchesOfAStepDoNotMatterToASharedTable) {
  const std::string train =
      "bary train --task copy --max_iters 5 --share_embeddings true --tie_embeddings true" + kSmall;
  const std::string whole = weights(train + "--traversal depth_first --out_dir deep");
  int n = 0;
  for (const std::string split : {"--batch_size 32", "--batch_size 8 --gradient_accumulation_steps 4",
                                  "--batch_size 1 --gradient_accumulation_steps 32 --threads 1"})
    EXPECT_EQ(weights(train + "--traversal layer_by_layer " + split + " --out_dir wide" + std::to_string(n++)), whole)
        << split;
}

TEST_F(Pairs, OneStackAnswersToo) {
  std::set<std::string> weights;
  for (const std::string prefix : {"false", "true"}) {
    const std::string run = "line-" + prefix;
    const Ran trained = shell(work_.path(), "bary train --task copy --arch decoder --pos learned --out_dir " + run +
                                                kSmall + "--n_layer 2 --max_iters 600 --max_length 4 --prefix " +
                                                prefix + " --sample_interval 600");
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_NE(trained.err.find(" -> "), std::string::npos) << "samples of held-out pairs: " << trained.err;
    const auto result = nlohmann::json::parse(trained.out);
    EXPECT_GT(result["val_exact_match"].get<double>(), 0.9);
    EXPECT_TRUE(weights.insert(result["weights_sha256"].get<std::string>()).second)
        << "a prefix changes what is learned";
    EXPECT_EQ(shell(work_.path(), "bary translate " + run + " --source abca").out, "abca\n");
    const auto answer = json("bary translate " + run + " --source cab --json")[0]["answers"][0];
    EXPECT_EQ(answer["text"], "cab");
    const auto asked = json("bary translate " + run + " --source cab --target cab --json");
    EXPECT_EQ(asked["log_probability"], answer["log_probability"]) << "the same to the last bit";
    refused("bary translate " + run + " --source cab --beam 3", {"--beam", "one stack"});
    refused("bary eval " + run + " --beam 3", {"--beam", "one stack"});
    refused("bary generate " + run, {"pairs in one line", "bary translate " + run});
    refused("bary embed " + run + " a b", {"pairs in one line", "bary translate " + run});
    EXPECT_GT(json("bary eval " + run + " --json")["exact_match"].get<double>(), 0.9);
    work_.write("two.tsv", "abca\tabca\nhh\tgg\n");
    const auto two = json("bary eval " + run + " --data two.tsv --json");
    EXPECT_EQ(two["pairs"], 2) << "all of the file, each pair once";
    EXPECT_EQ(two["exact_match"], 0.5);
    const Ran told = shell(work_.path(), "bary eval " + run + " --data two.tsv");
    EXPECT_NE(told.out.find(" on 2 pairs of two.tsv: 50.0%"), std::string::npos) << told.out << told.err;
  }
}

TEST_F(Pairs, AFileIsJudgedWholeUnlessANumberIsGiven) {
  json("bary train --task copy --arch decoder --pos learned --max_iters 1 --out_dir run" + kSmall);
  std::string lines;
  for (int i = 0; i < 1001; ++i) lines += "abc\tabc\n";
  work_.write("many.tsv", lines);
  EXPECT_EQ(json("bary eval run --data many.tsv --json")["pairs"], 1001);
  EXPECT_EQ(json("bary eval run --data many.tsv --count 0 --json")["pairs"], 1001);
  EXPECT_EQ(json("bary eval run --data many.tsv --count 20 --json")["pairs"], 20);
  EXPECT_EQ(json("bary eval run --json")["pairs"], 1000) << "pairs without end: a thousand of those held out";
}

TEST_F(Pairs, OptionsThatMeanNothingAreRefused) {
  json("bary train --task copy --max_iters 2 --out_dir pairs" + kSmall);
  refused("bary eval pairs --split train", {"--split", "pairs"});
  refused("bary eval pairs --dataset other.txt", {"--dataset", "--data"});
  refused("bary train --task copy --tokenizer bpe --out_dir x", {"bpe", "bary tokenizer train"});
  refused("bary train --arch encoder --sample_interval 5 --out_dir x", {"--sample_interval", "bary fill"});
  refused("bary train missing.txt --out_dir gone", {"missing.txt"});
  EXPECT_FALSE(std::filesystem::exists(work_.path() / "gone")) << "nothing came of it, so nothing is left";
  work_.write("text.txt", std::string(4000, 'a') + " to be or not to be");
  json(
      "bary train text.txt --tokenizer char --n_layer 1 --n_embd 16 --n_head 2 --block_size 16 --max_iters 1 "
      "--batch_size 2 "
      "--out_dir text --json");
  refused("bary eval text --beam 4", {"--beam", "pairs"});
}

TEST_F(Pairs, RefuseWhatIsNotAPair) {
  work_.write("bad.tsv", "a\tb\nno tab here\n");
  refused("bary train --task pairs --data bad.tsv --out_dir run" + kModel, {"bad.tsv", "line 2", "tab"});
  work_.write("empty.tsv", "a\tb\n\tb\n");
  refused("bary train --task pairs --data empty.tsv --out_dir run" + kModel, {"line 2", "empty"});
  work_.write("s.txt", "a\nb\n"), work_.write("t.txt", "a\n");
  refused("bary train --task pairs --data s.txt --data_target t.txt --out_dir run" + kModel,
          {"s.txt", "t.txt", "2", "1"});
  refused("bary train --task copie --out_dir run" + kSmall, {"copie", "copy"});
  refused("bary train --task copy --label_smoothing 1 --out_dir run" + kSmall, {"label_smoothing", "1"});
  refused("bary train --task copy --batch_tokens 5 --max_iters 1 --out_dir run" + kSmall,
          {"batch_tokens is 5", "longer side"});
  refused("bary train --task copy --arch encoder --out_dir run", {"encoder", "--task"});
  refused("bary train --arch encoder-decoder --out_dir run", {"source_vocab_size"});
}

TEST_F(Pairs, EvaluationNeedsPairsThatWereHeldOutAndAreThere) {
  work_.write("two.tsv", "a\tb\nc\td\n");
  json("bary train --task pairs --data two.tsv --val_fraction 0 --max_iters 1 --out_dir all" + kModel);
  refused("bary eval all", {"held out no pairs", "val_fraction 0", "--data"});
  EXPECT_EQ(json("bary eval all --data two.tsv --json")["pairs"], 2);
  work_.write("lines.txt", "One.\nTwo.\nThree.\nFour.\n");
  json("bary train - --task restoration --val_fraction 0.25 --max_iters 1 --out_dir lines" + kModel + "< lines.txt");
  refused("bary eval lines < lines.txt", {"standard input", "--data"});
}

TEST_F(Pairs, ATargetOfOnlyTheEndIsLearned) {
  work_.write("ends.tsv", "a\t\nb\t\nc\t\nd\t\n");
  const auto trained =
      json("bary train --task pairs --data ends.tsv --val_fraction 0.25 --max_iters 30 --out_dir run" + kModel);
  EXPECT_EQ(trained["val_exact_match"], 1.0);
  EXPECT_EQ(json("bary translate run --source a --json")[0]["answers"][0]["text"], "");
}

TEST_F(Pairs, OtherArrangementsAreNamed) {
  work_.write("text.txt", made_up_text(400));
  json("bary train --task copy --out_dir pairs --max_iters 1" + kSmall);
  json(
      "bary train text.txt --vocab_size 300 --block_size 16 --n_embd 32 --n_head 2 --batch_size 4 --max_iters 1 "
      "--eval_iters 2 --json --out_dir text");
  refused("bary generate pairs", {"encoder-decoder", "bary translate"});
  refused("bary translate text --source a", {"decoder", "encoder-decoder"});
  refused("bary translate pairs --source ''", {"source", "empty"});
  refused("bary translate pairs --source a --beam 0", {"beam", "0"});
  refused("bary translate pairs --source a --beam 2 --n_best 3", {"n_best", "3", "2"});
  refused("bary translate pairs --source a --beam 60000 --max_tokens 1000000", {"GB", "beam"});
  json("bary train --task copy --pos learned --out_dir table --max_iters 1" + kSmall);
  refused("bary translate table --source abcdefgabcdefg", {"7", "15"});
  refused("bary train --init_from resume --out_dir pairs --min_length 5 --max_iters 2", {"other pairs", "--task"});
}

}  // namespace
}  // namespace bary::runs_test
