// SPDX-License-Identifier: Apache-2.0
#include "bary/text/token_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <vector>

#include "bary/base/refusal_test.h"
#include "bary/text/batch.h"

namespace bary {
namespace {
namespace fs = std::filesystem;

class TokenFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "bary-token-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(TokenFileTest, NanoGptsBytesAreRead) {
  write_file_atomic(folder_ / "x.bin", std::string("\x01\x00\x00\x01\xff\xff", 6));
  const TokenFile file(folder_ / "x.bin", 65536);
  ASSERT_EQ(file.size(), 3);
  EXPECT_EQ(file.tokens()[0], 1);
  EXPECT_EQ(file.tokens()[1], 256);
  EXPECT_EQ(file.tokens()[2], 65535);
}

TEST_F(TokenFileTest, WrittenFileIsReadBackInBothWidths) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 200'000; ++i) ids.push_back(i % 60'000);
  write_token_file(folder_ / "x.bin", ids, 65536);
  EXPECT_EQ(fs::file_size(folder_ / "x.bin"), 400'000u);
  write_token_file(folder_ / "y.bin", ids, 65537);
  EXPECT_EQ(fs::file_size(folder_ / "y.bin"), 800'000u);
  const TokenFile x(folder_ / "x.bin", 60'000), y(folder_ / "y.bin", 65537, TokenType::uint32);
  std::vector<int32_t> again(ids.size());
  x.tokens().copy(0, again);
  EXPECT_EQ(again, ids);
  y.tokens().copy(0, again);
  EXPECT_EQ(again, ids);
  std::vector<int32_t> inputs(7), targets(7);
  Windows(x.tokens(), 7).window_at(199'992, inputs, targets);
  EXPECT_EQ(targets.back(), ids.back());
}

TEST_F(TokenFileTest, IdsOutsideTheVocabularyAreNamed) {
  std::vector<int32_t> ids(150'000, 5);
  ids[140'000] = 300;
  ids[140'001] = 400;
  write_token_file(folder_ / "x.bin", ids, 1000);
  TokenFile(folder_ / "x.bin", 401);
  const std::string message = message_of([&] { TokenFile file(folder_ / "x.bin", 300); });
  expect_contains(message, "id 300 at position 140000 is not below vocab_size 300");
  expect_contains(message, "x.bin");
  // The highest bit of a uint32 is not a sign.
  write_file_atomic(folder_ / "y.bin", std::string("\0\0\0\x80", 4));
  expect_contains(message_of([&] { TokenFile file(folder_ / "y.bin", 300, TokenType::uint32); }), "id 2147483648");
}

TEST_F(TokenFileTest, CutAndEmptyFilesAreRefused) {
  write_file_atomic(folder_ / "empty.bin", "");
  expect_contains(message_of([&] { TokenFile file(folder_ / "empty.bin", 10); }), "empty");
  write_file_atomic(folder_ / "odd.bin", std::string(7, '\0'));
  expect_contains(message_of([&] { TokenFile file(folder_ / "odd.bin", 10); }), "7 bytes");
  write_file_atomic(folder_ / "six.bin", std::string(6, '\0'));
  TokenFile(folder_ / "six.bin", 10);
  expect_contains(message_of([&] { TokenFile file(folder_ / "six.bin", 10, TokenType::uint32); }), "uint32");
  message_of([&] { TokenFile file(folder_ / "six.bin", 0); });
  message_of([&] { TokenFile file(folder_ / "missing.bin", 10); });
}

TEST_F(TokenFileTest, WriterRefusesForeignIdsAndLeavesNothing) {
  const std::vector<int32_t> too_large{1, 2, 10}, negative{-1};
  expect_contains(message_of([&] { write_token_file(folder_ / "x.bin", too_large, 10); }), "id 10 at position 2");
  expect_contains(message_of([&] { write_token_file(folder_ / "x.bin", negative, 10); }), "id -1 at position 0");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TokenFileTest, OffsetsPastFourGigabytes) {
  const int64_t count = (int64_t{1} << 31) + 5;  // just over 4 GiB of uint16
  write_file_atomic(folder_ / "big.bin", "");
  if (::truncate((folder_ / "big.bin").c_str(), count * 2) != 0) GTEST_SKIP() << "SKIPPED: no sparse files here";
  const MappedFile file(folder_ / "big.bin");
  const TokenSpan tokens(
      std::span<const uint16_t>(reinterpret_cast<const uint16_t*>(file.bytes().data()), size_t(count)));
  std::vector<int32_t> inputs(4, 1), targets(4, 1);
  const Windows windows(tokens, 4);
  EXPECT_EQ(windows.starts(), count - 4);
  windows.window_at(count - 5, inputs, targets);
  EXPECT_EQ(targets, std::vector<int32_t>(4, 0));
  bool past = false;
  for (uint64_t i = 0; i < 64; ++i) past |= windows.start_of(1, Purpose::test, 0, i) > (int64_t{1} << 30);
  EXPECT_TRUE(past);
}

TEST_F(TokenFileTest, FolderWithMeta) {
  const std::vector<int32_t> train{0, 1, 2, 3, 4}, val{4, 3};
  write_token_file(folder_ / "train.bin", train, 5);
  write_token_file(folder_ / "val.bin", val, 5);
  const TokenMeta meta{5, TokenType::uint16, "abc", "toy", "123", 7, 5, 2};
  write_token_meta(folder_, meta);
  const TokenFolder folder = open_token_folder(folder_, {.vocab_size = 5, .tokenizer = "abc"});
  EXPECT_EQ(folder.train.size(), 5);
  ASSERT_TRUE(folder.val);
  EXPECT_EQ(folder.val->tokens()[1], 3);
  ASSERT_TRUE(folder.meta);
  EXPECT_EQ(folder.meta->tokenizer, "abc");
  EXPECT_EQ(folder.meta->corpus, "toy");
  EXPECT_EQ(folder.meta->corpus_sha256, "123");
  EXPECT_EQ(folder.meta->corpus_bytes, 7);
  EXPECT_EQ(open_token_folder(folder_).vocab_size, 5);
  expect_contains(message_of([&] { open_token_folder(folder_, {.tokenizer = "other"}); }), "\"other\"");
  expect_contains(message_of([&] { open_token_folder(folder_, {.vocab_size = 6}); }), "has 6");
  write_token_file(folder_ / "val.bin", train, 5);
  expect_contains(message_of([&] { open_token_folder(folder_); }), "has 5 tokens");
  fs::remove(folder_ / "val.bin");
  expect_contains(message_of([&] { open_token_folder(folder_); }), "val.bin is missing");
}

TEST_F(TokenFileTest, FolderWithoutMetaIsNanoGpts) {
  const std::vector<int32_t> train{50256, 1};
  write_token_file(folder_ / "train.bin", train, 50257);
  expect_contains(message_of([&] { open_token_folder(folder_); }), "--vocab_size");
  const TokenFolder folder = open_token_folder(folder_, {.vocab_size = 50257});
  EXPECT_FALSE(folder.meta);
  EXPECT_FALSE(folder.val);
  EXPECT_EQ(folder.train.tokens()[0], 50256);
}

TEST_F(TokenFileTest, BrokenMetaIsRefused) {
  const std::string good = R"({"format":"bary-tokens-1","vocab_size":5,"dtype":"uint16","tokenizer":"","corpus":"",)"
                           R"("corpus_sha256":"","corpus_bytes":1,"train_tokens":1,"val_tokens":0})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_file_atomic(folder_ / "meta.json", text);
    return message_of([&] { read_token_meta(folder_); });
  };
  write_file_atomic(folder_ / "meta.json", good);
  EXPECT_EQ(read_token_meta(folder_)->vocab_size, 5);
  expect_contains(with("bary-tokens-1", "bary-tokens-9"), "bary-tokens-9");
  expect_contains(with("\"uint16\"", "\"int8\""), "int8");
  with("\"vocab_size\":5", "\"vocab_size\":0");
  with("\"vocab_size\":5", "\"vocab_size\":-5");
  with("\"vocab_size\":5", "\"vocab_size\":5.5");
  with("\"train_tokens\":1", "\"train_tokens\":-1");
  with("\"val_tokens\":0", "\"val_tokens\":\"0\"");
  with("}", "");
}

}  // namespace
}  // namespace bary
