// SPDX-License-Identifier: Apache-2.0
// What must work from a shell: whole runs, odd bytes, pipes, resume, and what goes where.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace bary::runs_test {
namespace {

const std::string kSmall =
    " --vocab_size 300 --block_size 16 --n_embd 32 --n_head 2 --batch_size 4 --eval_iters 2 --eval_interval 10 --json ";

nlohmann::json train(const Workplace& work, const std::string& more) {
  Ran r = shell(work.path(), "bary train text.txt" + kSmall + more);
  EXPECT_EQ(r.code, 0) << r.err;
  return nlohmann::json::parse(r.out);
}

TEST(Command, TrainEvaluateGenerateResume) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  const auto straight = train(work, "--max_iters 20 --out_dir a");
  train(work, "--max_iters 12 --out_dir b");
  const auto resumed = train(work, "--max_iters 20 --out_dir b --init_from resume");
  EXPECT_EQ(straight["weights_sha256"], resumed["weights_sha256"]);
  EXPECT_EQ(straight["weights_sha256"],
            train(work,
                  "--max_iters 20 --out_dir c --threads 1 --eval_interval 3 --sample_interval 7 "
                  "--sample_prompt the --sample_tokens 5")["weights_sha256"]);
  EXPECT_EQ(straight["weights_sha256"],
            train(work, "--max_iters 20 --out_dir d --batch_size 2 --gradient_accumulation_steps 2")["weights_sha256"]);
  EXPECT_LT(straight["val_perplexity"].get<double>(), 300.0);

  Ran eval = shell(work.path(), "bary eval a --json");
  EXPECT_NEAR(nlohmann::json::parse(eval.out)["perplexity"].get<double>(), straight["val_perplexity"].get<double>(),
              1e-9);
  Ran g = shell(work.path(), "bary generate a --prompt 'the ' --max_new_tokens 10 --seed 3");
  EXPECT_EQ(g.code, 0);
  EXPECT_EQ(g.out.substr(0, 4), "the ");
  EXPECT_NE(g.err.find("tok/s"), std::string::npos);
  EXPECT_EQ(
      g.out,
      shell(work.path(), "bary generate a --prompt 'the ' --max_new_tokens 10 --seed 3 --no-cache --threads 1").out);
  EXPECT_EQ(g.out,
            shell(work.path(), "bary generate a --prompt='the ' --max-new-tokens=10 --seed 3 --prefill_chunk 1").out);
}

TEST(Command, EvaluationIsOfATextThatIsThere) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  Ran r = shell(work.path(), "bary train - --max_iters 2 --out_dir run" + kSmall + " < text.txt");
  ASSERT_EQ(r.code, 0) << r.err;
  r = shell(work.path(), "bary eval run < text.txt");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("standard input, which is gone; name a text with --dataset"), std::string::npos) << r.err;
  EXPECT_EQ(shell(work.path(), "bary eval run --dataset - < text.txt").code, 0);
  r = shell(work.path(), "bary eval run --dataset text.txt --split all --val_fraction 0.2");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--val_fraction"), std::string::npos) << r.err;
}

TEST(Command, PromptsInAFileOfAnySystem) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  train(work, "--max_iters 2 --out_dir run");
  work.write("prompts.txt", "the cat\r\na dog\r\n");
  const Ran r = shell(work.path(), "bary generate run --prompt_file prompts.txt --max_new_tokens 2 --json");
  const auto both = nlohmann::json::parse(r.out);
  EXPECT_EQ(both[0]["prompt"], "the cat");
  EXPECT_EQ(both[1]["prompt"], "a dog");
  work.write("prompts.txt", "the cat\n\na dog\n");
  const Ran blank = shell(work.path(), "bary generate run --prompt_file prompts.txt --max_new_tokens 2");
  EXPECT_EQ(blank.code, 2);
  EXPECT_NE(blank.err.find("prompts.txt, line 2"), std::string::npos) << blank.err;
}

TEST(Command, KilledRunResumesToTheSameBits) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  // killed without warning somewhere after step 20, resumed from what is on the disk
  Ran r = shell(work.path(), "$PROGRAM train text.txt" + kSmall +
                                 "--max_iters 100000 --save_interval 20 --eval_interval 0 --out_dir b & pid=$!\n"
                                 "for i in $(seq 600); do [ -e b/last/state.json ] && grep -q '\"step\": [2-9]0' "
                                 "b/last/state.json && break; sleep 0.05; done\n"
                                 "kill -9 $pid; wait $pid; true");
  ASSERT_EQ(r.code, 0) << r.err;
  const auto state = nlohmann::json::parse(work.read("b/last/state.json"));
  ASSERT_EQ(state["step"].get<int64_t>() % 20, 0);
  const std::string target = std::to_string(state["step"].get<int64_t>() + 30);
  const auto long_run = train(work, "--max_iters " + target + " --eval_interval 0 --out_dir c");
  const auto resumed = train(work, "--max_iters " + target + " --eval_interval 0 --out_dir b --init_from resume");
  EXPECT_EQ(resumed["weights_sha256"], long_run["weights_sha256"]);
}

TEST(Command, InterruptSavesAndSaysHowToGoOn) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  Ran r = shell(work.path(),
                "$PROGRAM train text.txt --vocab_size 300 --block_size 16 --n_embd 32 --n_head 2 --batch_size 4 "
                "--max_iters 100000 --eval_iters 2 "
                "--out_dir run & pid=$!\n"
                "for i in $(seq 600); do [ -e run/metrics.jsonl ] && grep -q '\"step\": *20' run/metrics.jsonl && "
                "break; sleep 0.05; done\n"
                "kill -INT $pid; wait $pid; exit $?");
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_NE(r.out.find("--init_from resume"), std::string::npos) << r.out;
  EXPECT_TRUE(std::filesystem::exists(work.path() / "run/last/model.safetensors"));
}

TEST(Command, OddBytesAndPipes) {
  Workplace work;
  std::string odd = made_up_text(200) + std::string("\0\xff\xfe\xc3 NUL and broken UTF-8\0", 26);
  work.write("odd.bin", odd);
  Ran r = shell(
      work.path(),
      "bary tokenizer train odd.bin --vocab_size 280 --out tok.json && cat odd.bin | bary tokenizer encode - "
      "--tokenizer "
      "tok.json > ids.txt && cat ids.txt | bary tokenizer decode - --tokenizer tok.json | cmp - odd.bin && echo same");
  EXPECT_NE(r.out.find("same"), std::string::npos) << r.err;
  EXPECT_EQ(shell(work.path(), "bary params gpt2 | head -1 > /dev/null; echo ${PIPESTATUS[0]}").code, 0);
  Ran color = shell(work.path(), "bary params gpt2");
  EXPECT_EQ(color.out.find('\x1b'), std::string::npos);
  EXPECT_NE(color.out.find("124,439,808"), std::string::npos);
}

TEST(Command, AVocabularyTheTextCannotFillStopsEarlyWithANote) {
  Workplace work;
  work.write("text.txt", "aaaa bbbb aaaa bbbb aaaa bbbb aaaa bbbb");
  Ran r = shell(work.path(), "bary tokenizer train text.txt --vocab_size 5000 --out tok.json");
  EXPECT_EQ(r.code, 0);
  EXPECT_NE((r.out + r.err).find("no pair"), std::string::npos) << r.out << r.err;
}

TEST(Command, TomlThenFlagsAndTheRecord) {
  Workplace work;
  work.write("text.txt", made_up_text(300));
  work.write("run.toml",
             "[model]\nn_embd = 16\nn_head = 2\nvocab_size = 280\nblock_size = 8\n[train]\nmax_iters = 3\nbatch_size = "
             "2\neval_iters = 1\nseed = 5\n");
  Ran r = shell(work.path(), "bary train text.txt --config run.toml --n_head 4 --out_dir run");
  EXPECT_EQ(r.code, 0) << r.err;
  const auto record = nlohmann::json::parse(work.read("run/run.json"));
  EXPECT_EQ(record["options"]["n_embd"], 16);
  EXPECT_EQ(record["options"]["n_head"], 4);
  EXPECT_EQ(record["options"]["seed"], 5);
  EXPECT_TRUE(record["machine"].contains("isa"));
}

TEST(Command, FullDiskKeepsThePreviousCheckpoint) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  train(work, "--max_iters 5 --out_dir run");
  // a limit on file sizes below the weights stands for the full disk; the shell's own files stay under it
  Ran r = shell(work.path(),
                "ulimit -f 40; bary train text.txt" + kSmall + "--max_iters 10 --out_dir run --init_from resume");
  EXPECT_EQ(r.code, 1) << r.err;
  Ran g = shell(work.path(), "bary generate run --prompt the --max_new_tokens 3");
  EXPECT_EQ(g.code, 0) << g.err;
  EXPECT_EQ(nlohmann::json::parse(work.read("run/last/state.json"))["step"], 5);
}

TEST(Command, EveryHelpHasExamples) {
  Workplace work;
  for (const char* name : {"train", "eval", "generate", "fill", "embed", "params", "data", "tokenizer train",
                           "tokenizer encode", "tokenizer decode", "tokenizer show", "bench machine", "bench kernels",
                           "bench step", "bench attention", "bench decode", "bench beam", "bench tokenizer"}) {
    Ran r = shell(work.path(), std::string("bary ") + name + " --help");
    EXPECT_EQ(r.code, 0) << name;
    EXPECT_NE(r.out.find("Examples:"), std::string::npos) << name;
  }
}

TEST(Command, JsonSaysWhatTheTextSays) {
  Workplace work;
  const auto json = [&](const std::string& line) {
    const Ran r = shell(work.path(), line + " --json");
    EXPECT_EQ(r.code, 0) << line << "\n" << r.err;
    return nlohmann::json::parse(r.out, nullptr, false);
  };
  const auto gpt2 = json("bary params --block_size 512 gpt2");
  EXPECT_EQ(gpt2["window"], 512) << "flags change a name's settings from before it too";
  EXPECT_EQ(gpt2["width"], 768);
  EXPECT_EQ(gpt2["heads"], 12);
  EXPECT_EQ(gpt2["mlp_width"], 3072);
  EXPECT_TRUE(gpt2["tie_embeddings"].get<bool>());
  EXPECT_EQ(gpt2["memory"]["weights"], 4 * gpt2["parameters"].get<int64_t>());
  const std::string small = " --n_layer 1 --n_embd 16 --n_head 2 --times 1 --threads 1";
  const auto decode = json("bary bench decode chapter --tokens 3" + small);
  EXPECT_EQ(decode["model"], "chapter");
  EXPECT_EQ(decode["tokens"], 3);
  EXPECT_LT(decode["parameters"].get<int64_t>(), 100000);
  const auto beam = json("bary bench beam --sources 2 --beam 2 --tokens 3" + small);
  EXPECT_EQ(beam["model"], "copy");
  EXPECT_GT(beam["sources_per_second"].get<double>(), 0);
  const auto attention = json("bary bench attention --length 16 --times 1 --path stored");
  EXPECT_EQ(attention["path"], "stored");
  EXPECT_TRUE(attention.contains("isa"));
}

TEST(Command, TokenFilesAreCodedAndPartedAlready) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  ASSERT_EQ(shell(work.path(), "bary data text.txt --tokenizer byte --out_dir tokens").code, 0);
  const std::string small =
      "bary train tokens --max_iters 1 --out_dir run --block_size 16 --n_embd 32 --n_head 2 --batch_size 4 "
      "--eval_iters 2 ";
  for (const char* option : {"--tokenizer char", "--val_fraction 0.3", "--ties hf", "--vocab_size 300"}) {
    const Ran r = shell(work.path(), small + option);
    EXPECT_EQ(r.code, 2) << option;
    EXPECT_NE(r.err.find("token files"), std::string::npos) << r.err;
  }
  ASSERT_EQ(shell(work.path(), small).code, 0);
  EXPECT_EQ(shell(work.path(), "bary eval run --split val").code, 0);
  const Ran all = shell(work.path(), "bary eval run --split all");
  EXPECT_EQ(all.code, 2);
  EXPECT_NE(all.err.find("train.bin and val.bin"), std::string::npos) << all.err;
}

TEST(Command, AModelKeepsItsTokenizer) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  train(work, "--max_iters 1 --out_dir run");
  const std::string before = work.read("run/last/tokenizer.json");
  for (const char* line : {"bary data text.txt --tokenizer byte --out_dir run/last",
                           "bary tokenizer train text.txt --vocab_size 260 --out run/last/tokenizer.json",
                           "bary tokenizer train text.txt --vocab_size 260 --out run/tokenizer.json"}) {
    const Ran r = shell(work.path(), line);
    EXPECT_EQ(r.code, 2) << line;
    EXPECT_NE(r.err.find("holds a model"), std::string::npos) << r.err;
  }
  EXPECT_EQ(work.read("run/last/tokenizer.json"), before);
  const Ran folder = shell(work.path(), "bary tokenizer train text.txt --vocab_size 260 --out run");
  EXPECT_EQ(folder.code, 2);
  EXPECT_NE(folder.err.find("is a folder"), std::string::npos) << folder.err;
}

// B is past its first look at the folder, waiting for its text, while A trains there to the end.
TEST(Command, ARunThatEndedMeanwhileIsKept) {
  Workplace work;
  work.write("text.txt", made_up_text(400));
  const Ran r =
      shell(work.path(), "mkfifo pipe && { bary train - --max_iters 2 --out_dir run" + kSmall +
                             " < pipe 2> b.err & b=$!; exec 3> pipe; sleep 1; bary train text.txt --max_iters 3 "
                             "--out_dir run" +
                             kSmall + " > /dev/null 2>&1 || exit 9; cat text.txt >&3; exec 3>&-; wait $b; }");
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(work.read("b.err").find("holds a run already"), std::string::npos) << work.read("b.err");
  EXPECT_EQ(nlohmann::json::parse(work.read("run/last/state.json"))["step"], 3);
}

}  // namespace
}  // namespace bary::runs_test
