// SPDX-License-Identifier: Apache-2.0
// GPT-2's own vocabulary, where it is at hand: $BARY_GPT2 names a folder with its encoder.json and vocab.bpe, as
// tools/setup/gpt2.sh finds them in a package. Expected ids: tiktoken and Hugging Face's tokenizers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "bary/base/file.h"
#include "bary/base/sha256.h"
#include "bary/text/tokenizer.h"
#include "bary/text/tokenizer_json.h"

namespace bary {
namespace {

using Ids = std::vector<int32_t>;

class Gpt2 : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("BARY_GPT2");
    if (folder == nullptr || *folder == 0)
      GTEST_SKIP() << "SKIPPED: BARY_GPT2 names no folder with encoder.json and vocab.bpe";
    const std::filesystem::path from = folder;
    tokenizer_ = Tokenizer(
        tokenizer_parts_from_gpt2_files(read_file(from / "encoder.json"), read_file(from / "vocab.bpe"), folder));
  }
  Tokenizer tokenizer_;
};

TEST_F(Gpt2, Vocabulary) {
  EXPECT_EQ(tokenizer_.vocab_size(), 50257);
  EXPECT_EQ(tokenizer_.start_token(), 50256);
  EXPECT_EQ(tokenizer_.specials().size(), 1u);
  EXPECT_EQ(tokenizer_.parts().merges.size(), 50000u);
  EXPECT_EQ(Tokenizer::from_json(tokenizer_.to_json()).fingerprint(), tokenizer_.fingerprint());
}

TEST_F(Gpt2, KnownIds) {
  const std::pair<std::string, Ids> known[] = {{"  leading", {220, 3756}},
                                               {"\n\n\n", {628, 198}},
                                               {"\r\n\r\n", {201, 198, 201, 198}},
                                               {"it'ſ", {270, 6, 129, 123}},
                                               {"12345678", {10163, 2231, 30924}},
                                               {"DON'T", {41173, 6, 51}},
                                               {"naïve café", {2616, 38776, 40304}},
                                               {"tabs\t\tend", {8658, 82, 197, 197, 437}},
                                               {"i ⭢ j 🤗 é", {72, 2343, 255, 95, 474, 12520, 97, 245, 38251}}};
  for (const auto& [text, ids] : known) {
    EXPECT_EQ(tokenizer_.encode(text), ids) << text;
    EXPECT_EQ(tokenizer_.decode(ids), text);
  }
}

TEST_F(Gpt2, Row22StreamsACharacterWhole) {
  StreamDecoder out(tokenizer_);
  EXPECT_EQ(out.push(8582), "");
  EXPECT_EQ(out.push(97), "");
  EXPECT_EQ(out.push(245), "🤗");
}

TEST_F(Gpt2, OneCharacterAMillionTimes) {
  EXPECT_EQ(tokenizer_.count(std::string(1000000, 'a')), 250000);
  EXPECT_EQ(tokenizer_.count(std::string(1000000, '^')), 250000);
  EXPECT_EQ(tokenizer_.count(std::string(1000000, ' ')), 1000000);
}

TEST_F(Gpt2, TinyShakespeare) {
  const char* const shared = std::getenv("BARY_SHARED");
  const std::filesystem::path folder = shared != nullptr
                                           ? std::filesystem::path(shared)
                                           : std::filesystem::path(BARY_SOURCE_DIR).parent_path() / "shared";
  const std::filesystem::path file = folder / "data" / "tinyshakespeare.txt";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "SKIPPED: no " << file << "; set BARY_SHARED";
  const Ids ids = tokenizer_.encode(read_file(file));
  EXPECT_EQ(ids.size(), 338025u);
  std::string bytes;
  for (const int32_t id : ids)
    for (int i = 0; i < 32; i += 8) bytes += static_cast<char>(id >> i);
  EXPECT_EQ(sha256_hex(bytes).substr(0, 16), "0c00ab83dc7f4666");
}

}  // namespace
}  // namespace bary
