// SPDX-License-Identifier: Apache-2.0
// The real commands, run in this process on small files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/cli/test_io_test.h"
#include "bary/text/token_file.h"

namespace bary {
namespace {

namespace fs = std::filesystem;

class Commands : public ::testing::Test {
 protected:
  Commands() {
    std::string name = (fs::temp_directory_path() / "bary-cli-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::string text;
    for (int i = 0; i < 200; ++i) text += "to be or not to be, that is the question\n";
    write_file_atomic(folder_ / "text.txt", text);
  }
  ~Commands() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Ran bary(const std::vector<std::string>& args, const std::string& input = "") { return ran(commands(), args, input); }
  void learn() {
    Ran r = bary({"tokenizer", "train", path("text.txt"), "--vocab_size=270", "--out", path("tok.json")});
    ASSERT_EQ(r.code, 0) << r.err;
  }

  fs::path folder_;
};

TEST_F(Commands, EveryCommandExplainsItself) {
  std::set<std::string> names;
  for (const auto& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second);
    EXPECT_GE(command.examples.size(), 2u) << command.name;
    EXPECT_LE(command.examples.size(), 6u) << command.name;
    for (const auto& example : command.examples)
      EXPECT_NE(example.command.find("bary " + command.name), std::string::npos);
    std::vector<std::string> args = {"help"};
    args.push_back(command.name.substr(0, command.name.find(' ')));
    if (command.name.find(' ') != std::string::npos) args.push_back(command.name.substr(command.name.find(' ') + 1));
    Ran r = bary(args);
    EXPECT_EQ(r.code, 0);
    EXPECT_TRUE(r.out.starts_with("bary " + command.name + ": ")) << r.out;
  }
}

TEST_F(Commands, TrainEncodeDecodeAnyBytes) {
  learn();
  std::string bytes("to be \0\xff\xc3 not <|endoftext|>\r\n\xf0\x9f\x99\x82", 34);
  Ran ids = bary({"tokenizer", "encode", "-", "--tokenizer", path("tok.json")}, bytes);
  ASSERT_EQ(ids.code, 0) << ids.err;
  EXPECT_TRUE(ids.out.ends_with("\n"));
  Ran text = bary({"tokenizer", "decode", "-", "--tokenizer", path("tok.json")}, ids.out);
  EXPECT_EQ(text.out, bytes);
  Ran json = bary({"tokenizer", "encode", "-", "--json", "--tokenizer", path("tok.json")}, bytes);
  EXPECT_EQ(bary({"tokenizer", "decode", "-", "--tokenizer", path("tok.json")}, json.out).out, bytes);
  auto count = parse_json(json.out, "out").size();
  EXPECT_EQ(bary({"tokenizer", "encode", "-", "--count", "--tokenizer", path("tok.json")}, bytes).out,
            std::to_string(count) + "\n");
  EXPECT_EQ(bary({"tokenizer", "encode", "-", "--tokenizer", path("tok.json")}, "").out, "\n");
}

TEST_F(Commands, TrainSaysWhatItLearned) {
  Ran r = bary({"tokenizer", "train", path("text.txt"), "--vocab_size=260", "--json", "--out", path("a/tok.json")});
  ASSERT_EQ(r.code, 0) << r.err;
  Json json = parse_json(r.out, "out");
  EXPECT_EQ(json["vocab_size"], 260);
  EXPECT_EQ(json["bytes"], 8200);
  EXPECT_LT(json["tokens"], 8200);
  Ran trace = bary({"tokenizer", "train", path("text.txt"), "--vocab_size=258", "--trace", "--out", path("tok.json")});
  EXPECT_NE(trace.out.find("256"), std::string::npos);
  EXPECT_NE(trace.out.find("count"), std::string::npos);
  Json traced = parse_json(
      bary({"tokenizer", "train", path("text.txt"), "--vocab_size=258", "--trace", "--json", "--out", path("tok.json")})
          .out,
      "out")["trace"];
  ASSERT_EQ(traced.size(), 2u);
  EXPECT_EQ(traced[0]["makes"]["id"], 256);
  EXPECT_GE(traced[0]["count"], traced[1]["count"]);
  Ran chars = bary({"tokenizer", "train", path("text.txt"), "--tokenizer=char", "--out", path("chars.json")});
  ASSERT_EQ(chars.code, 0) << chars.err;
  EXPECT_NE(chars.out.find("8,200 tokens of 15"), std::string::npos) << chars.out;
}

TEST_F(Commands, ShowsVocabularyAndText) {
  learn();
  Ran r = bary({"tokenizer", "show", path("tok.json")});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("vocab_size     270\n"), std::string::npos) << r.out;
  Ran text = bary({"tokenizer", "show", path("tok.json"), "--text", "to be"});
  EXPECT_NE(text.out.find("5 bytes, "), std::string::npos) << text.out;
  EXPECT_EQ(parse_json(bary({"tokenizer", "show", path("tok.json"), "--json"}).out, "out")["vocab_size"], 270);
  Json byte = parse_json(bary({"tokenizer", "show", "byte", "--json", "--text", "\xff"}).out, "out")["tokens"];
  ASSERT_EQ(byte.size(), 1u);
  EXPECT_EQ(byte[0]["bytes"], "ff") << "its text is U+FFFD, as that of half of all bytes";
  Json facts = parse_json(bary({"tokenizer", "show", path("tok.json"), "--json"}).out, "out");
  EXPECT_FALSE(facts.contains("first_merges"));
  Json three = parse_json(bary({"tokenizer", "show", path("tok.json"), "--json", "--merges=3"}).out, "out");
  ASSERT_EQ(three["first_merges"].size(), 3u);
  EXPECT_EQ(three["merges"], facts["merges"]);
  Json makes = three["first_merges"][0]["makes"];
  EXPECT_EQ(makes["id"], 256);
  Json cut = parse_json(
      bary({"tokenizer", "show", path("tok.json"), "--json", "--text", "to " + makes["text"].get<std::string>()}).out,
      "out");
  EXPECT_EQ(cut["pieces"][0]["text"], "to");
  EXPECT_EQ(cut["pieces"].back()["merges"].back()["makes"]["bytes"], makes["bytes"]);
}

TEST_F(Commands, DataWritesWhatTrainingReads) {
  learn();
  Ran r = bary({"data", path("text.txt"), "--tokenizer", path("tok.json"), "--out_dir", path("data"), "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  Json json = parse_json(r.out, "out");
  TokenFolder folder = open_token_folder(path("data"));
  EXPECT_EQ(folder.train.size(), json["train_tokens"]);
  ASSERT_TRUE(folder.val);
  EXPECT_EQ(folder.val->size(), json["val_tokens"]);
  Ran all =
      bary({"data", path("text.txt"), "--tokenizer", path("tok.json"), "--out_dir", path("data"), "--val_fraction=0"});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_FALSE(open_token_folder(path("data")).val);
}

TEST_F(Commands, RefusalsAreOneLineAndExitCodeTwo) {
  learn();
  write_file_atomic(folder_ / "empty.txt", "");
  std::string tokenizer = path("tok.json");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"tokenizer", "train", path("text.txt"), "--vocab_size=255"}, "--vocab_size: \"255\" came"},
      {{"tokenizer", "train", path("empty.txt"), "--out", path("x.json")}, "empty"},
      {{"tokenizer", "train", path("text.txt"), "--vocabsize=300"}, "did you mean --vocab_size?"},
      {{"tokenizer", "train", "a", "b"}, "2 texts came"},
      {{"tokenizer", "encode", path("text.txt"), "--tokenizer", path("no.json")}, "does not exist"},
      {{"tokenizer", "encode", "--tokenizer", tokenizer}, "0 came"},
      {{"tokenizer", "encode", path("no.txt"), "--tokenizer", tokenizer}, "no.txt"},
      {{"tokenizer", "encode", "--text", "<|x|>", "--tokenizer", path(".")}, "no tokenizer.json in this folder"},
      {{"tokenizer", "decode", "--tokenizer", tokenizer}, "no ids came"},
      {{"tokenizer", "decode", "5x", "--tokenizer", tokenizer}, "\"5x\" is no token id"},
      {{"tokenizer", "decode", "270", "--tokenizer", tokenizer}, "270"},
      {{"tokenizer", "decode", "99999999999", "--tokenizer", tokenizer}, "no token id"},
      {{"data", path("text.txt"), "--tokenizer", tokenizer}, "--out_dir is missing"},
      {{"data", path("text.txt"), "--tokenizer", tokenizer, "--out_dir", path("d"), "--val_fraction=1"}, "below 1"},
      {{"data", path("text.txt"), "--tokenizer", tokenizer, "--out_dir", path("text.txt")}, "text.txt"},
  };
  for (const auto& [args, part] : cases) {
    Ran r = bary(args);
    EXPECT_EQ(r.code, kExitInput) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
    EXPECT_TRUE(r.err.starts_with("bary: ")) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
}

TEST_F(Commands, OptionsWithoutEffectAreRefused) {
  learn();
  const std::string tok = path("tok.json"), text = path("text.txt");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"tokenizer", "train", text, "--tokenizer=char", "--vocab_size=300"}, "--vocab_size is for bpe"},
      {{"tokenizer", "train", text, "--tokenizer=char", "--ties=hf"}, "--ties"},
      {{"tokenizer", "train", text, "--tokenizer=char", "--trace"}, "--trace"},
      {{"tokenizer", "train", text, "--tokenizer=char", "--max_token_length=4"}, "--max_token_length"},
      {{"tokenizer", "train", text, "--tokenizer=char", "--min_frequency=2"}, "--min_frequency"},
      {{"tokenizer", "train", text, "--tokenizer=char", "--pattern=none"}, "--pattern"},
      {{"tokenizer", "show", tok, "--tokenizer", tok}, "--tokenizer is another tokenizer than " + tok},
      {{"tokenizer", "show", tok, "--text=to", "--merges=3"}, "--merges"},
      {{"lab", "list", "average", "--seeds=2"}, "--seeds"},
      {{"lab", "list", "averge", "--json"}, "did you mean average?"},
      {{"lab", "run", "average", "--seeds=2"}, "--budget quick runs each row once"},
      {{"generate", "run", "--prompt=a", "--prompt_file=b"}, "--prompt is one prompt"},
      {{"generate", "run", "--temperature=0", "--top_k=5"}, "--top_k is of drawing"},
      {{"generate", "run", "--temperature=0", "--num_samples=3"}, "--num_samples is of drawing"},
      {{"generate", "run", "--no-cache", "--prefill_chunk=2"}, "--prefill_chunk"},
      {{"generate", "run", "--json", "--quiet"}, "--quiet"},
      {{"tokenizer", "train", text, "--specials=a"}, "a"},
      {{"translate", "run"}, "--source TEXT, or --source_file FILE"},
      {{"translate", "run", "--target=a"}, "give --source TEXT"},
      {{"translate", "run", "--target=a", "--source_file=b"}, "--source_file has many sources"},
      {{"translate", "run", "--source=a", "--source_file=b"}, "--source is one source"},
      {{"translate", "run", "--source=a", "--target=b", "--beam=2"}, "--beam"},
      {{"translate", "run", "--source=a", "--target=b", "--n_best=1"}, "--n_best"},
      {{"translate", "run", "--source=a", "--target=b", "--attention"}, "--attention"},
      {{"translate", "run", "--source=a", "--target=b", "--max_tokens=3"}, "--max_tokens"},
      {{"translate", "run", "--source=a", "--target=b", "--length_penalty=1"}, "--length_penalty"},
      {{"translate", "run", "--source=a", "--target=b", "--no_repeat_ngram=2"}, "--no_repeat_ngram"},
  };
  for (const auto& [args, part] : cases) {
    const Ran r = bary(args);
    EXPECT_EQ(r.code, kExitInput) << r.err;
    EXPECT_NE(r.err.find(part), std::string::npos) << "wanted " << part << " in " << r.err;
  }
}

TEST_F(Commands, LabListForAProgram) {
  const Json two = parse_json(bary({"lab", "list", "scores", "average", "--json"}).out, "out");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0]["name"], "average") << "in the order of the chapter";
  EXPECT_GT(two[1]["seconds"]["chapter"].get<double>(), 0);
  EXPECT_GE(two[1]["seconds"]["chapter"], two[1]["seconds"]["quick"]);
}

TEST_F(Commands, ARefusedTextLeavesNoFolder) {
  learn();
  write_file_atomic(folder_ / "empty.txt", "");
  EXPECT_EQ(bary({"tokenizer", "train", path("empty.txt"), "--out", path("new/tok.json")}).code, kExitInput);
  EXPECT_EQ(bary({"data", path("empty.txt"), "--tokenizer", path("tok.json"), "--out_dir", path("new/data")}).code,
            kExitInput);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(Commands, ReadsOneTextALine) {
  std::ostringstream out, err;
  const Io io{out, err, [] { return std::string("one\r\n\ntwo\r"); }};
  EXPECT_EQ(read_lines("-", io, BlankLines::allowed), (std::vector<std::string>{"one", "", "two"}));
  try {
    read_lines("-", io, BlankLines::refused);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("standard input, line 2: it is blank"), std::string::npos) << e.what();
  }
}

TEST_F(Commands, ByteTokenizerNeedsNoFile) {
  EXPECT_EQ(bary({"tokenizer", "encode", "--text", "Hi", "--tokenizer", "byte"}).out, "72 105\n");
  EXPECT_EQ(bary({"tokenizer", "decode", "72,", "[105]", "--tokenizer", "byte"}).out, "Hi");
  EXPECT_EQ(bary({"tokenizer", "decode", "255", "--replace", "--tokenizer", "byte"}).out, "\xef\xbf\xbd");
}

}  // namespace
}  // namespace bary
