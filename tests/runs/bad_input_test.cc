// SPDX-License-Identifier: Apache-2.0
// What is refused: exit code 2, one line that names what came, what was expected and a next step, and nothing lost.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program.h"

namespace bary::runs_test {
namespace {

// Small and quick: 300 tokens of vocabulary, windows of 16, two steps.
std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> args{"train",       "text.txt", "--vocab_size", "300", "--block_size", "16",
                                "--n_embd",    "32",       "--n_head",     "2",   "--batch_size", "4",
                                "--max_iters", "2",        "--eval_iters", "2"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override { work_.write("text.txt", made_up_text(400)); }
  void refused(const std::vector<std::string>& args, const std::vector<std::string>& names,
               const std::string& input = "") {
    Ran r = bary(work_.path(), args, input);
    EXPECT_EQ(r.code, 2) << r.err;
    for (const std::string& n : names)
      EXPECT_NE(r.err.find(n), std::string::npos) << "wanted \"" << n << "\" in: " << r.err;
    EXPECT_NE(r.err.find("bary: "), std::string::npos);
    EXPECT_EQ(r.out, "");
  }
  void trained(const std::string& out = "run") {
    Ran r = bary(work_.path(), small({"--out_dir", out}));
    ASSERT_EQ(r.code, 0) << r.err;
  }
  Workplace work_;
};

TEST_F(BadInput, EmptyCorpus) {
  work_.write("empty.txt", "");
  refused({"train", "empty.txt"}, {"empty.txt", "empty"});
}
TEST_F(BadInput, CorpusShorterThanAWindowNamesBothNumbers) {
  work_.write("short.txt", "abc");
  refused({"train", "short.txt", "--tokenizer", "byte", "--block_size", "16"}, {"3 tokens", "17", "block_size"});
}
TEST_F(BadInput, CorpusOfExactlyOneWindowTrains) {  // 17 = block_size + 1
  work_.write("one.txt", "abcdefghijklmnopq");
  Ran r = bary(work_.path(), {"train", "one.txt", "--tokenizer", "byte", "--block_size", "16", "--val_fraction", "0",
                              "--max_iters", "1", "--batch_size", "2", "--n_embd", "16", "--n_head", "2"});
  EXPECT_EQ(r.code, 0) << r.err;
}
TEST_F(BadInput, ValidationPartTooShort) {
  refused(small({"--val_fraction", "0.0005"}), {"validation", "17", "val_fraction"});
}
TEST_F(BadInput, VocabularyBelowTheBytes) { refused(small({"--vocab_size", "255"}), {"255", "256"}); }
TEST_F(BadInput, UnknownKeyWithTheNearest) { refused(small({"--warmpu", "3"}), {"warmpu", "warmup_iters"}); }
TEST_F(BadInput, UnknownValue) { refused(small({"--norm", "prre"}), {"prre", "pre", "post"}); }
TEST_F(BadInput, UnknownCommand) { refused({"trian"}, {"trian", "train"}); }
TEST_F(BadInput, TokensAboveTheVocabularyInAFile) {
  std::string ids;
  for (int i = 0; i < 200; ++i) ids += std::string("\x01\x00", 2);
  ids += std::string("\x00\x03", 2);  // 768
  std::filesystem::create_directory(work_.path() / "tokens");
  work_.write("tokens/train.bin", ids);
  refused({"train", "tokens", "--vocab_size", "300", "--block_size", "16"}, {"768", "300", "200"});
}
TEST_F(BadInput, UnwritableOutDir) { refused(small({"--out_dir", "text.txt/run"}), {"text.txt"}); }
TEST_F(BadInput, WidthNotDivisibleByHeads) {
  refused(small({"--n_embd", "30", "--n_head", "4"}), {"30", "4", "d_head"});
  Ran r = bary(work_.path(), small({"--n_embd", "30", "--n_head", "4", "--d_head", "8"}));
  EXPECT_EQ(r.code, 0) << r.err;
}
TEST_F(BadInput, OddRotaryWidth) { refused(small({"--pos", "rotary", "--d_head", "7"}), {"even", "7"}); }
TEST_F(BadInput, SamplerOptions) {
  trained();
  refused({"generate", "run", "--temperature", "-1"}, {"temperature", "-1"});
  refused({"generate", "run", "--top_p", "1.5"}, {"top_p", "1.5"});
  refused({"generate", "run", "--top_p", "-0.1"}, {"top_p", "-0.1"});
  for (const std::vector<std::string>& good : std::vector<std::vector<std::string>>{
           {"--temperature", "0"}, {"--top_k", "0"}, {"--top_p", "0"}, {"--top_k", "100000"}}) {
    std::vector<std::string> args{"generate", "run", "--prompt", "the", "--max_new_tokens", "5"};
    args.insert(args.end(), good.begin(), good.end());
    Ran r = bary(work_.path(), args);
    EXPECT_EQ(r.code, 0) << r.err;
  }
}
TEST_F(BadInput, Prompts) {
  trained();
  refused({"generate", "run", "--prompt", ""}, {"empty", "start token"});
  refused({"generate", "run", "--prompt", made_up_text(5)}, {"16", "positions"});
}
TEST_F(BadInput, DamagedCheckpoints) {
  trained();
  const std::string whole = work_.read("run/best/model.safetensors");
  for (size_t part = 0; part < 8; ++part) {
    work_.write("run/best/model.safetensors", whole.substr(0, whole.size() * part / 8));
    refused({"generate", "run", "--prompt", "the"}, {"model.safetensors"});
  }
  std::string flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  work_.write("run/best/model.safetensors", flipped);
  refused({"eval", "run"}, {"model.safetensors"});
  work_.write("run/best/model.safetensors", whole);
  EXPECT_EQ(bary(work_.path(), {"generate", "run", "--prompt", "the", "--max_new_tokens", "3"}).code, 0);
}
TEST_F(BadInput, CheckpointOfAnotherShape) {
  trained();
  refused({"train", "--init_from", "resume", "--out_dir", "run", "--n_layer", "3"}, {"n_layer", "1", "3"});
  refused({"generate", "nowhere", "--prompt", "the"}, {"nowhere"});
  refused({"train", "--init_from", "resume", "--out_dir", "nowhere"}, {"nowhere"});
}
TEST_F(BadInput, ARunIsNotOverwrittenUnasked) {
  trained();
  const std::string before = work_.read("run/best/model.safetensors"), history = work_.read("run/metrics.jsonl");
  refused(small({"--out_dir", "run"}), {"run", "--init_from resume", "--overwrite"});
  refused({"train", "--task", "copy", "--out_dir", "run"}, {"run", "--overwrite"});
  EXPECT_EQ(work_.read("run/best/model.safetensors"), before);
  EXPECT_EQ(work_.read("run/metrics.jsonl"), history);
  Ran r = bary(work_.path(), small({"--out_dir", "run", "--overwrite", "--val_fraction", "0", "--seed", "9"}));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_FALSE(std::filesystem::exists(work_.path() / "run/best"))
      << "the earlier run's best would pass for this one's";
  EXPECT_NE(r.out.find("train perplexity"), std::string::npos) << r.out;
}
TEST_F(BadInput, EvaluatingOnlyWritesNothingAndIsNotRemembered) {
  trained();
  const std::string record = work_.read("run/run.json"), history = work_.read("run/metrics.jsonl");
  Ran r = bary(work_.path(), {"train", "--init_from", "resume", "--out_dir", "run", "--eval_only"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("held-out perplexity"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("written to"), std::string::npos) << r.out;
  r = bary(work_.path(), small({"--out_dir", "other", "--eval_only", "--json", "--val_fraction", "0"}));
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_GT(json["train_loss"].get<double>(), 0.0);
  EXPECT_TRUE(json["val_loss"].is_null() && json["best_val_loss"].is_null() && json["val_accuracy"].is_null()) << r.out;
  EXPECT_FALSE(std::filesystem::exists(work_.path() / "other"));
  EXPECT_EQ(work_.read("run/run.json"), record);
  EXPECT_EQ(work_.read("run/metrics.jsonl"), history);
  r = bary(work_.path(), {"train", "--init_from", "resume", "--out_dir", "run", "--max_iters", "4", "--json"});
  EXPECT_EQ(nlohmann::json::parse(r.out)["steps"], 4) << r.err;
}
TEST_F(BadInput, WeightsKeepTheirShapeAndVocabulary) {
  trained();
  for (const char* key : {"rope_theta", "norm_eps", "n_layer"})
    refused({"train", "--init_from", "resume", "--out_dir", "run", std::string("--") + key, "7"}, {key, "7", "keeps"});
  refused({"train", "--init_from", "resume", "--out_dir", "run", "--model", "gpt2"}, {"model", "gpt2"});
  const std::vector<std::string> tune{"train",     "text.txt", "--init_from", "run",
                                      "--out_dir", "tuned",    "--max_iters", "1"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tune.begin(), tune.end());
    return more;
  };
  refused(with({"--n_layer", "4"}), {"n_layer is 1 in run", "4"});
  refused(with({"--arch", "encoder"}), {"arch is decoder in run", "encoder"});
  refused(with({"--tokenizer", "char"}), {"--tokenizer", "vocabulary", "run"});
  refused(with({"--model", "gpt2"}), {"--model", "run"});
  Ran r = bary(work_.path(), with({"--n_layer", "1", "--dropout", "0.1", "--learning_rate", "1e-4"}));
  EXPECT_EQ(r.code, 0) << r.err;
  const auto options = nlohmann::json::parse(work_.read("tuned/run.json"))["options"];
  EXPECT_EQ(options["n_embd"], 32);
  EXPECT_EQ(options["tokenizer"], "run/best/tokenizer.json");
}
TEST_F(BadInput, AChangedTextIsNotGoneOnFrom) {
  trained();
  work_.write("text.txt", made_up_text(500));
  refused({"train", "--init_from", "resume", "--out_dir", "run", "--max_iters", "4"}, {"text", "changed", "run/last"});
}
TEST_F(BadInput, OptionsOfNoEffect) {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--min_lr", "1e-5"},
                                             {"--decay_frac", "0.5"},
                                             {"--sample_tokens", "5"},
                                             {"--symbols", "5"},
                                             {"--window", "3"},
                                             {"--rope_theta", "500"},
                                             {"--rope_original", "8"},
                                             {"--rope_scaling", "yarn"},
                                             {"--n_encoder_layer", "2"},
                                             {"--share_embeddings", "true"},
                                             {"--attend", "dot"},
                                             {"--tie_embeddings", "true", "--head_bias", "true"},
                                             {"--arch", "encoder", "--mask", "causal"},
                                             {"--weight_decay", "0", "--decay_group", "linear"},
                                             {"--dataset", "text.txt"},
                                             {"--tokenizer", "byte"},
                                             {"--val_fraction", "0", "--patience", "2"}})
    refused(small(more), {more[more.size() - 2].substr(2)});
  refused({"train", "text.txt", "--arch", "lstm", "--pos", "rotary"}, {"--pos", "lstm"});
  refused({"params", "--arch", "lstm", "--pos", "rotary"}, {"--pos", "lstm"});
  refused({"params", "gpt2", "--head_bias", "true"}, {"--head_bias", "tie_embeddings"});
  refused({"params", "copy", "--attend", "dot"}, {"--attend", "encoder-decoder"});
  refused({"train", "text.txt", "--arch", "gru", "--embed_scale", "true"}, {"--embed_scale", "gru"});
  refused({"train", "--task", "reverse", "--arch", "decoder", "--n_encoder_layer", "2"},
          {"--n_encoder_layer", "source"});
  refused({"train", "text.txt", "--task", "reverse"}, {"reverse", "pairs of its own"});
  refused({"train", "--task", "numbers-words", "--max_length", "30"}, {"--max_length", "numbers-words"});
}
// What a named model or a record has is not asked for, and an option that says what is so anyway is no mistake.
TEST_F(BadInput, OptionsOfAnEffectOrUnasked) {
  Ran r = bary(work_.path(), small({"--out_dir", "tied", "--tie_embeddings", "true", "--head_bias", "false"}));
  EXPECT_EQ(r.code, 0) << r.err;
  r = bary(work_.path(), {"train", "--init_from", "resume", "--out_dir", "tied", "--max_iters", "3"});
  EXPECT_EQ(r.code, 0) << r.err;
  r = bary(work_.path(), small({"--out_dir", "full", "--arch", "encoder", "--mask", "full"}));
  EXPECT_EQ(r.code, 0) << r.err;
  r = shell(work_.path(),
            "bary train --model copy --task copy --arch lstm --attend dot --share_embeddings true --n_embd 16 "
            "--max_length 4 --batch_size 2 --max_iters 1 --eval_iters 2 --out_dir lstm");
  EXPECT_EQ(r.code, 0) << r.err;
  for (const char* name : {"gpt2", "annotated", "token", "tied"})
    EXPECT_EQ(bary(work_.path(), {"params", name, "--vocab_size", "300"}).code, 0) << name;
}
TEST_F(BadInput, ConfigFiles) {
  work_.write("model.toml", "model = \"token\"\nmax_iters = 1\n");
  Ran r =
      bary(work_.path(), {"train", "text.txt", "--config", "model.toml", "--tokenizer", "byte", "--out_dir", "token"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(work_.read("token/run.json"))["options"]["n_layer"], 0);
  work_.write("nested.toml", "config = \"model.toml\"\n");
  refused(small({"--config", "nested.toml"}), {"nested.toml", "config"});
  work_.write("bad.toml", "n_layer = \"many\"\n");
  refused(small({"--config", "bad.toml"}), {"n_layer", "many"});
  work_.write("typo.toml", "n_layers = 2\n");
  refused(small({"--config", "typo.toml"}), {"n_layers", "n_layer"});
  work_.write("broken.toml", "n_layer = = 2\n");
  refused(small({"--config", "broken.toml"}), {"broken.toml"});
}

}  // namespace
}  // namespace bary::runs_test
