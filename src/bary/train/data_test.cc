// SPDX-License-Identifier: Apache-2.0
#include "bary/train/data.h"

#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

DataOptions options(const std::filesystem::path& dataset, const std::string& tokenizer = "byte") {
  DataOptions o;
  o.dataset = dataset.string(), o.tokenizer = tokenizer;
  return o;
}

std::vector<int32_t> all(TokenSpan s) {
  std::vector<int32_t> v;
  for (int64_t i = 0; i < s.size(); ++i) v.push_back(s[i]);
  return v;
}

TEST(TrainData, BytesOfAFile) {
  Folder folder;
  std::string text = "NUL \0 and \xff\xfe bad bytes, kept";
  text += std::string("\0\r\n", 3);
  write(folder / "text.txt", text);
  TrainData d = TrainData::load(options(folder / "text.txt"), std::nullopt);
  const auto n = static_cast<int64_t>(text.size());
  EXPECT_EQ(d.vocab_size, 256);
  EXPECT_EQ(d.train.size() + d.val.size(), n);
  EXPECT_EQ(d.train.size(), static_cast<int64_t>(0.9 * static_cast<double>(n)));
  EXPECT_EQ(d.bytes, n);
  std::vector<int32_t> ids = all(d.train), rest = all(d.val);
  ids.insert(ids.end(), rest.begin(), rest.end());
  EXPECT_EQ(d.tokenizer->decode(ids), text);
  EXPECT_EQ(d.bytes_of_token, std::vector<int32_t>(256, 1));
  EXPECT_EQ(d.sha256.size(), 64u);
  TrainData moved = std::move(d);  // the spans point into what moved along
  EXPECT_EQ(all(moved.train), std::vector<int32_t>(ids.begin(), ids.begin() + moved.train.size()));
}

TEST(TrainData, CharactersAndBytePairs) {
  Folder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "h\u00e9llo w\u00f6rld ";
  write(folder / "text.txt", text);
  TrainData chars = TrainData::load(options(folder / "text.txt", "char"), std::nullopt);
  EXPECT_EQ(chars.vocab_size, 9);  // h e' l o w o" r d and the space
  EXPECT_EQ(chars.train.size() + chars.val.size(), 200 * 12);
  DataOptions o = options(folder / "text.txt", "bpe");
  o.vocab_size = 260;
  std::string notes;
  o.notice = [&](const std::string& n) { notes += n; };
  TrainData bpe = TrainData::load(o, std::nullopt);
  EXPECT_EQ(bpe.vocab_size, 260);
  EXPECT_LT(bpe.train.size() + bpe.val.size(), static_cast<int64_t>(text.size()));
  int64_t bytes = 0;
  for (TokenSpan part : {bpe.train, bpe.val}) bytes += bytes_of(part, bpe.bytes_of_token);
  EXPECT_EQ(bytes, static_cast<int64_t>(text.size()));
  EXPECT_EQ(notes, "");
  o.vocab_size = 5000;  // more than the text supports: stops early, and says so
  bpe = TrainData::load(o, std::nullopt);
  EXPECT_LT(bpe.vocab_size, 300);
  EXPECT_NE(notes, "");
}

TEST(TrainData, AGivenTokenizerIsUsed) {
  Folder folder;
  write(folder / "text.txt", "abcabcabcabc");
  TrainData d = TrainData::load(options(folder / "text.txt", "bpe"), Tokenizer::characters("abcx"));
  EXPECT_EQ(d.vocab_size, 4);
  d.tokenizer->save(folder / "tokenizer.json");
  TrainData again = TrainData::load(options(folder / "text.txt", (folder / "tokenizer.json").string()), std::nullopt);
  EXPECT_EQ(again.tokenizer->fingerprint(), d.tokenizer->fingerprint());
  write(folder / "other.txt", "abcd");
  EXPECT_TRUE(has(message([&] { TrainData::load(options(folder / "other.txt"), Tokenizer::characters("abc")); }), "d"));
}

TEST(TrainData, DocumentsArePartedByTheirToken) {
  Folder folder;
  write(folder / "texts" / "a.txt", "aaa");
  write(folder / "texts" / "b.txt", "bb");
  DataOptions o = options(folder / "texts");
  o.val_fraction = 0;
  TrainData d = TrainData::load(o, std::nullopt);
  EXPECT_EQ(d.vocab_size, 257);
  EXPECT_EQ(all(d.train), (std::vector<int32_t>{'a', 'a', 'a', 256, 'b', 'b', 256}));
  int64_t bytes = 0;
  for (int32_t id : all(d.train)) bytes += d.bytes_of_token[static_cast<size_t>(id)];
  EXPECT_EQ(bytes, 5) << "what parts documents is no byte of theirs";
  EXPECT_TRUE(d.val.empty());
}

TEST(TrainData, TokenFilesAreReadAsTheyAre) {
  Folder folder;
  std::filesystem::create_directories(folder / "tokens");
  const std::vector<int32_t> train = random_ids(100, 50), val = random_ids(30, 50, 2);
  write_token_file(folder / "tokens" / "train.bin", train, 50);
  write_token_file(folder / "tokens" / "val.bin", val, 50);
  DataOptions o = options(folder / "tokens");
  o.vocab_size = 50;
  TrainData d = TrainData::load(o, std::nullopt);
  EXPECT_EQ(d.vocab_size, 50);
  EXPECT_EQ(all(d.train), train);
  EXPECT_EQ(all(d.val), val);
  EXPECT_FALSE(d.tokenizer.has_value());
  EXPECT_TRUE(d.bytes_of_token.empty());
  o.vocab_size = 20;
  EXPECT_TRUE(has(message([&] { TrainData::load(o, std::nullopt); }), "train.bin"));
}

TEST(TrainData, RefusesWithANextStep) {
  Folder folder;
  write(folder / "empty.txt", "");
  EXPECT_TRUE(has(message([&] { TrainData::load(options(folder / "empty.txt"), std::nullopt); }), "empty"));
  write(folder / "text.txt", "some text");
  DataOptions o = options(folder / "text.txt", "bpe");
  o.vocab_size = 255;
  const std::string small = message([&] { TrainData::load(o, std::nullopt); });
  EXPECT_TRUE(has(small, "255") && has(small, "256")) << small;
  o.vocab_size = 300, o.ties = "random";
  EXPECT_TRUE(has(message([&] { TrainData::load(o, std::nullopt); }), "first, hf or bytes"));
  EXPECT_TRUE(has(message([&] { TrainData::load(options("tinyshakespear"), std::nullopt); }), "tinyshakespeare"));
}

}  // namespace
}  // namespace bary
