// SPDX-License-Identifier: Apache-2.0
#include "bary/text/special_tokens.h"

#include <gtest/gtest.h>

#include "bary/text/tokenizer.h"

namespace bary {
namespace {

std::vector<std::string> matches(const std::vector<std::string>& texts, std::string_view text,
                                 const std::vector<bool>& enabled = {}) {
  const SpecialMatcher matcher{std::span<const std::string>(texts)};
  std::vector<std::string> found;
  for (size_t at = 0;;) {
    const auto match = matcher.find(text, at, enabled);
    if (!match) return found;
    EXPECT_EQ(text.substr(match->begin, match->end - match->begin), texts[match->index]);
    found.push_back(fmt::format("{}@{}", texts[match->index], match->begin));
    at = match->end;
  }
}

using Strings = std::vector<std::string>;

TEST(SpecialMatcher, LeftmostAndThenLongest) {
  const Strings texts = {"<|a|>", "<|a|>b", "<|im", "<|im_x|>"};
  EXPECT_EQ(matches(texts, "<|a|>b <|im_x|>"), (Strings{"<|a|>b@0", "<|im_x|>@7"}));
  EXPECT_EQ(matches(texts, "<|a|>c<|im_x|"), (Strings{"<|a|>@0", "<|im@6"}));
  EXPECT_EQ(matches(texts, "<|a|><|a|>"), (Strings{"<|a|>@0", "<|a|>@5"}));
  EXPECT_EQ(matches(texts, "<|<|<|a|"), Strings{});
  EXPECT_EQ(matches({"ab", "bcd"}, "abcd"), Strings{"ab@0"});  // leftmost beats longest
  EXPECT_EQ(matches({"x", "\xFF\xFE", "yx"}, "a\xFF\xFEyxx"), (Strings{"\xFF\xFE@1", "yx@3", "x@5"}));
  EXPECT_EQ(matches({}, "text"), Strings{});
  EXPECT_EQ(matches({"a"}, ""), Strings{});
}

TEST(SpecialMatcher, OnlyWhatIsEnabled) {
  EXPECT_EQ(matches({"<|a|>", "<|a|>b"}, "<|a|>b", {true, false}), Strings{"<|a|>@0"});
  EXPECT_EQ(matches({"<|a|>", "<|a|>b"}, "<|a|>", {false, true}), Strings{});
}

TEST(SpecialMatcher, RefusesEmptyAndTwice) {
  const Strings empty = {"a", ""}, twice = {"a", "b", "a"};
  EXPECT_THROW(SpecialMatcher{std::span<const std::string>(empty)}, Error);
  EXPECT_THROW(SpecialMatcher{std::span<const std::string>(twice)}, Error);
}

// A thousand tokens that share a beginning, met again and again without one matching.
TEST(SpecialMatcher, ManyTokensInOnePass) {
  Strings texts;
  for (int i = 0; i < 1000; ++i) texts.push_back(fmt::format("<|reserved_{}|>", i));
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "<|reserved_";
  EXPECT_EQ(matches(texts, text), Strings{});
  EXPECT_EQ(matches(texts, text + "<|reserved_999|>").size(), 1u);
}

class Specials : public ::testing::Test {
 protected:
  Tokenizer tokenizer_ = Tokenizer::bytes({"<|endoftext|>", "<|user|>"});
};

TEST_F(Specials, AreRefusedUnlessAllowed) {
  try {
    tokenizer_.encode("ab<|user|>");
    FAIL();
  } catch (const SpecialTextError& error) {
    EXPECT_EQ(error.token(), "<|user|>");
    EXPECT_EQ(error.offset(), 2u);
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_STREQ(
        error.what(),
        "encode: the text contains the special token \"<|user|>\" at byte 2; allow it, encode special tokens as "
        "text, or remove it");
  }
  EXPECT_THROW(tokenizer_.count("<|endoftext|>"), SpecialTextError);
}

TEST_F(Specials, AsTextTheyAreLikeAnyOther) {
  EXPECT_EQ(tokenizer_.encode("<|user|>", SpecialPolicy::as_text()).size(), 8u);
  EXPECT_EQ(tokenizer_.decode(tokenizer_.encode("<|user|>", SpecialPolicy::as_text())), "<|user|>");
}

TEST_F(Specials, MatchedWhereAllowed) {
  const std::vector<int32_t> ids = tokenizer_.encode("a<|user|><|endoftext|>", SpecialPolicy::match_all());
  EXPECT_EQ(ids, (std::vector<int32_t>{'a', 257, 256}));
  EXPECT_EQ(tokenizer_.decode(ids), "a<|user|><|endoftext|>");
  SpecialPolicy policy;
  policy.allowed = {"<|user|>"};
  EXPECT_EQ(tokenizer_.encode("<|user|>", policy), std::vector<int32_t>{257});
  EXPECT_THROW(tokenizer_.encode("<|user|><|endoftext|>", policy), SpecialTextError);
  policy.others = SpecialPolicy::Others::text;
  EXPECT_EQ(tokenizer_.encode("<|user|><|endoftext|>", policy).size(), 1u + 13u);
  policy.allowed = {"<|usr|>"};
  EXPECT_THROW(tokenizer_.encode("a", policy), Error);
}

TEST_F(Specials, StartToken) {
  EXPECT_EQ(tokenizer_.start_token(), 256);
  EXPECT_EQ(Tokenizer().start_token(), std::nullopt);
  EXPECT_EQ(tokenizer_.special_id("<|user|>"), 257);
  EXPECT_TRUE(tokenizer_.is_special(257));
  EXPECT_FALSE(tokenizer_.is_special(255));
  EXPECT_FALSE(tokenizer_.is_special(258));
}

TEST(SpecialTokens, EndThePiecesBesideThem) {
  // White space at the end of the text before the token does not give back its last character.
  BpeOptions options{.vocab_size = 256 + 2, .specials = {"<s>"}};
  const std::vector<std::string_view> documents = {"a  ", "b  "};
  const Tokenizer tokenizer = Tokenizer::bpe(train_bpe(documents, options), options);
  EXPECT_EQ(tokenizer.encode("a  <s>", SpecialPolicy::match_all()), (std::vector<int32_t>{'a', 256, 257}));
  EXPECT_EQ(tokenizer.encode("a  c"), (std::vector<int32_t>{'a', ' ', ' ', 'c'}));
}

}  // namespace
}  // namespace bary
