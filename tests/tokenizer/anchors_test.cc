// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE on tiny Shakespeare, 256 bytes and 768 merges: the counts and hashes that other implementations give.
// The text is looked for in $BARY_SHARED/data (default: ../shared beside the source folder).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "bary/base/file.h"
#include "bary/base/parallel.h"
#include "bary/base/sha256.h"
#include "bary/text/tokenizer.h"

namespace bary {
namespace {

using Ids = std::vector<int32_t>;

class Shakespeare : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const shared = std::getenv("BARY_SHARED");
    const std::filesystem::path folder = shared != nullptr
                                             ? std::filesystem::path(shared)
                                             : std::filesystem::path(BARY_SOURCE_DIR).parent_path() / "shared";
    const std::filesystem::path file = folder / "data" / "tinyshakespeare.txt";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "SKIPPED: no " << file << "; set BARY_SHARED";
    text_ = read_file(file);
    ASSERT_EQ(sha256_hex(text_), "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  }

  BpeTraining train(std::string_view text, TieRule ties, int vocab_size = 1024) const {
    return train_bpe(std::vector<std::string_view>{text}, options(ties, vocab_size));
  }
  static BpeOptions options(TieRule ties, int vocab_size = 1024) { return {.vocab_size = vocab_size, .ties = ties}; }
  Tokenizer tokenizer(std::string_view text, TieRule ties) const {
    return Tokenizer::bpe(train(text, ties), options(ties));
  }
  std::string_view first(double share) const {
    return std::string_view(text_).substr(0, static_cast<size_t>(share * static_cast<double>(text_.size())));
  }

  std::string text_;
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

// The first 16 digits of the hash of all "hex(left) hex(right)" lines.
std::string merges_hash(const Tokenizer& tokenizer) {
  std::string lines;
  for (const BpeMerge& merge : tokenizer.parts().merges) {
    lines += lines.empty() ? "" : "\n";
    lines += hex(tokenizer.bytes_of(merge.left)) + " " + hex(tokenizer.bytes_of(merge.right));
  }
  return sha256_hex(lines).substr(0, 16);
}

template <class Unsigned>
std::string ids_hash(const Ids& ids) {
  std::string bytes;
  for (const int32_t id : ids)
    for (size_t i = 0; i < sizeof(Unsigned); ++i) bytes += static_cast<char>(static_cast<uint32_t>(id) >> (8 * i));
  return sha256_hex(bytes).substr(0, 16);
}

TEST_F(Shakespeare, PiecesOfGpt2sPattern) {
  const PieceCounts counts = count_pieces(std::vector<std::string_view>{text_}, Pattern::gpt2);
  EXPECT_EQ(counts.total, 297833);
  EXPECT_EQ(counts.pieces.size(), 15057u);
  EXPECT_EQ(counts.bytes, 1115394);
  EXPECT_EQ(std::accumulate(counts.pieces.begin(), counts.pieces.end(), int64_t{0},
                            [](int64_t sum, const CountedPiece& piece) { return sum + piece.count; }),
            counts.total);
}

TEST_F(Shakespeare, TokensAndMergesOfEachTieRule) {
  const struct {
    TieRule rule;
    int64_t tokens;
    const char* merges;
  } expected[] = {{TieRule::first, 459760, "233439b5de596330"},
                  {TieRule::hf, 459792, "919661dc082c2b6e"},
                  {TieRule::bytes, 459760, "cf10bb8f5c5659f0"}};
  for (const auto& [rule, tokens, merges] : expected) {
    const BpeTraining training = train(text_, rule);
    EXPECT_EQ(training.tokens, tokens) << tie_rule_name(rule);
    EXPECT_EQ(training.note, "");
    const Tokenizer learned = Tokenizer::bpe(training, options(rule));
    EXPECT_EQ(merges_hash(learned), merges) << tie_rule_name(rule);
    EXPECT_EQ(learned.count(text_), tokens) << tie_rule_name(rule);
  }
}

TEST_F(Shakespeare, TraceOfTheTraining) {
  const BpeTraining training = train(text_, TieRule::first);
  ASSERT_EQ(training.steps.size(), 768u);
  int ties = 0;
  for (const BpeStep& step : training.steps) ties += step.ties > 1;
  EXPECT_EQ(ties, 309);
  EXPECT_EQ(training.steps.back().count, 121);
  EXPECT_EQ(training.steps.back().tokens, 459760);
  const Tokenizer learned = Tokenizer::bpe(training, options(TieRule::first));
  std::string merged;
  for (int32_t id = 256; id < 276; ++id) merged += fmt::format("[{}]", learned.bytes_of(id));
  EXPECT_EQ(merged, "[ t][he][ a][ou][ s][ m][in][ w][re][ha][nd][ the][ b][is][or][ f][er][ll][it][on]");
}

TEST_F(Shakespeare, IdsAreThoseOfOthers) {
  const Tokenizer learned = tokenizer(text_, TieRule::first);
  const Ids ids = learned.encode(text_);
  ASSERT_EQ(ids.size(), 459760u);
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 20),
            (Ids{671, 420, 939, 58, 10, 774, 548, 331, 584, 308, 315, 801, 271, 361, 711, 44, 673, 317, 614, 46}));
  EXPECT_EQ(ids_hash<uint32_t>(ids), "e4fe6f375e578055");
  EXPECT_EQ(ids_hash<uint16_t>(ids), "b0d0bca2391eed82");
  EXPECT_EQ(learned.decode(ids), text_);
  EXPECT_EQ(Tokenizer::from_json(learned.to_json()).encode(text_), ids);
}

TEST_F(Shakespeare, NinetyPercent) {
  const std::string_view beginning = first(0.9), rest = std::string_view(text_).substr(beginning.size());
  const Tokenizer on_all = tokenizer(text_, TieRule::first);
  EXPECT_EQ(on_all.count(beginning), 411899);
  EXPECT_EQ(on_all.count(rest), 47861);
  // Learned without the held-out text, as an honest comparison of vocabularies must.
  const Tokenizer on_beginning = tokenizer(beginning, TieRule::first);
  EXPECT_EQ(on_beginning.count(beginning), 411158);
  EXPECT_EQ(on_beginning.count(rest), 49416);
  EXPECT_EQ(on_beginning.count(text_), 460574);
  const Tokenizer as_hf = tokenizer(beginning, TieRule::hf);
  EXPECT_EQ(as_hf.count(beginning), 411158);
  EXPECT_EQ(as_hf.count(rest), 49420);
}

TEST_F(Shakespeare, UntilNoPairIsLeft) {
  const BpeTraining training = train(text_, TieRule::hf, 100000);
  EXPECT_EQ(training.steps.size(), 21271u);
  EXPECT_EQ(training.tokens, 297833);  // one for each piece
  EXPECT_EQ(training.note, "learned 21271 of 99744 merges: no pair of neighbouring tokens is left");
}

TEST_F(Shakespeare, CharactersAreNanoGpts) {
  const Tokenizer characters = Tokenizer::characters(text_);
  EXPECT_EQ(characters.vocab_size(), 65);
  EXPECT_EQ(characters.count(text_), 1115394);
  EXPECT_EQ(characters.encode("hii there"), (Ids{46, 47, 47, 1, 58, 46, 43, 56, 43}));
  EXPECT_EQ(characters.decode(characters.encode(text_)), text_);
}

}  // namespace
}  // namespace bary
