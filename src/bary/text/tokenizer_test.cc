// SPDX-License-Identifier: Apache-2.0
#include "bary/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "bary/base/error.h"
#include "bary/base/parallel.h"
#include "bary/base/random.h"

namespace bary {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer learn(std::string_view text, BpeOptions options) {
  return Tokenizer::bpe(train_bpe(std::vector<std::string_view>{text}, options), options);
}

template <class Action>
std::string message(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Joins the lowest rank, leftmost first, until none is left; begins again after each.
Ids encode_by_definition(const Tokenizer& tokenizer, std::string_view text) {
  Ids all;
  PieceScanner pieces(tokenizer.pattern(), text);
  for (std::string_view piece; pieces.next(piece);) {
    Ids ids;
    for (char c : piece) {
      for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
        if (tokenizer.bytes_of(id) == std::string_view(&c, 1)) ids.push_back(id);
    }
    for (const BpeMerge* best = nullptr;; best = nullptr) {
      size_t where = 0;
      for (const BpeMerge& merge : tokenizer.parts().merges) {
        for (size_t i = 0; i + 1 < ids.size() && best == nullptr; ++i)
          if (ids[i] == merge.left && ids[i + 1] == merge.right) best = &merge, where = i;
        if (best != nullptr) break;
      }
      if (best == nullptr) break;
      ids[where] = best->result;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(where) + 1);
    }
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

std::string random_text(RandomStream& random, std::string_view letters, uint64_t longest) {
  std::string text;
  for (uint64_t i = random.below(longest); i > 0; --i) text += letters[random.below(letters.size())];
  return text;
}

TEST(Tokenizer, WikipediaExample) {
  const Tokenizer tokenizer = learn("aaabdaaabac", {.vocab_size = 259});
  EXPECT_EQ(tokenizer.encode("aaabdaaabac"), (Ids{258, 100, 258, 97, 99}));
  EXPECT_EQ(tokenizer.bytes_of(258), "aaab");
  const std::vector<BpeMergeStep> steps = tokenizer.explain("aaab");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].rank, 1);
  EXPECT_EQ(steps[1].merge.result, 257);
}

// Short pieces, pieces beyond the scan, and pieces beyond the heap; with and without merges in order.
TEST(Tokenizer, EncodingAgreesWithTheDefinition) {
  for (uint64_t trial = 0; trial < 200; ++trial) {
    RandomStream random(trial, Purpose::test);
    const std::string_view letters = trial % 2 == 0 ? "ab" : "abcd  'se\n\xC3\xA9";
    Tokenizer tokenizer = learn(random_text(random, letters, 600),
                                {.vocab_size = 300, .pattern = trial % 3 == 0 ? Pattern::none : Pattern::gpt2});
    if (trial % 5 == 0) {  // ranks that put merges before those that make their parts
      TokenizerParts parts = tokenizer.parts();
      for (size_t i = parts.merges.size(); i > 1; --i) std::swap(parts.merges[i - 1], parts.merges[random.below(i)]);
      tokenizer = Tokenizer(parts);
    }
    const std::string text = random_text(random, letters, trial % 10 == 0 ? 3000 : 300);
    const Ids ids = tokenizer.encode(text);
    ASSERT_EQ(ids, encode_by_definition(tokenizer, text)) << trial;
    ASSERT_EQ(tokenizer.decode(ids), text);
    ASSERT_EQ(tokenizer.count(text), static_cast<int64_t>(ids.size()));
    if (tokenizer.pattern() == Pattern::none) {
      ASSERT_EQ(tokenizer.explain(text).size(), text.size() - ids.size());
    }
  }
}

TEST(Tokenizer, LongPiecesAgreeWithTheDefinition) {
  RandomStream random(7, Purpose::test);
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "abcab"[random.below(5)];
  const Tokenizer tokenizer = learn(text, {.vocab_size = 280, .pattern = Pattern::none});
  EXPECT_EQ(tokenizer.encode(text), encode_by_definition(tokenizer, text));
}

// A pass over the text for each merge in turn: the same, where every merge ranks after those that make its parts.
Ids encode_by_passes(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  for (char c : text) ids.push_back(static_cast<uint8_t>(c));
  for (const BpeMerge& merge : tokenizer.parts().merges) {
    size_t n = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool here = ids[i] == merge.left && i + 1 < ids.size() && ids[i + 1] == merge.right;
      ids[n++] = here ? merge.result : ids[i];
      i += here;
    }
    ids.resize(n);
  }
  return ids;
}

// Many windows, whose seams must not show; among them tokens longer than the overlap and than a window.
TEST(Tokenizer, WindowsOfAHugePieceDoNotShow) {
  RandomStream random(11, Purpose::test);
  for (int trial = 0; trial < 12; ++trial) {
    const std::string_view letters = trial % 3 == 0 ? "ab" : trial % 3 == 1 ? "etaoin shrdlu" : "aaaaaaaaab";
    std::string text;
    for (int i = 0; i < 70000; ++i) text += letters[random.below(letters.size())];
    text.replace(20000, 15000 + 500 * trial, std::string(15000 + 500 * trial, 'a'));
    const Tokenizer tokenizer = learn(std::string_view(text).substr(10000, 40000),
                                      {.vocab_size = 256 + 100 * (1 + trial % 4), .pattern = Pattern::none});
    ASSERT_TRUE(tokenizer.encode(text) == encode_by_passes(tokenizer, text)) << trial;
  }
  const std::string same(200000, 'a');
  const Tokenizer doubling = learn(same, {.vocab_size = 256 + 17, .pattern = Pattern::none});
  EXPECT_EQ(doubling.bytes_of(272).size(), 131072u);
  EXPECT_EQ(doubling.encode(same), encode_by_passes(doubling, same));
}

// Several merges that make one token, so that a place of a pair can appear left of an earlier one.
TEST(Tokenizer, SeveralMergesMayMakeOneToken) {
  TokenizerParts parts = learn("ab bc abc", {.vocab_size = 259}).parts();
  ASSERT_EQ(parts.merges.size(), 3u);
  parts = TokenizerParts();
  parts.kind = TokenizerKind::bpe;
  for (int b = 0; b < 256; ++b) parts.tokens.add(std::string(1, static_cast<char>(b)));
  for (std::string_view token : {"ab", "bc", "abc", "abcx"}) parts.tokens.add(token);
  parts.merges = {{'a', 'b', 256}, {'b', 'c', 257}, {256, 'c', 258}, {'a', 257, 258}, {258, 'x', 259}};
  const Tokenizer tokenizer{parts};
  RandomStream random(3, Purpose::test);
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "abcx"[random.below(4)];
  EXPECT_EQ(tokenizer.encode(text), encode_by_definition(tokenizer, text));
}

TEST(Tokenizer, Row12WholePiecesFirstOnlyWhereAsked) {
  TokenizerParts parts;
  parts.kind = TokenizerKind::bpe;
  parts.pattern = Pattern::gpt2;
  for (int b = 0; b < 256; ++b) parts.tokens.add(std::string(1, static_cast<char>(b)));
  for (std::string_view token : {"ab", "bc", "abc"}) parts.tokens.add(token);
  parts.merges = {{'b', 'c', 257}, {'a', 'b', 256}, {256, 'c', 258}};  // abc can't be reached: bc is joined first
  EXPECT_EQ(Tokenizer(parts).encode("abc"), (Ids{'a', 257}));
  parts.whole_first = true;
  EXPECT_EQ(Tokenizer(parts).encode("abc"), Ids{258});
  EXPECT_EQ(Tokenizer(parts).encode("abcc"), (Ids{'a', 257, 'c'}));
}

TEST(Tokenizer, Row21AllBytesAndAllPairsOfBytes) {
  std::string pairs;
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) pairs += static_cast<char>(a), pairs += static_cast<char>(b);
  const Tokenizer bpe = learn("the quick brown fox, 季 and í; 季 季", {.vocab_size = 280});
  for (const Tokenizer& tokenizer : {Tokenizer(), bpe}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(pairs)), pairs);
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const std::string two = pairs.substr(i, 2);
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(two)), two);
    }
  }
  EXPECT_EQ(bpe.decode(bpe.encode("季í")), "季í");
}

TEST(Tokenizer, Row30InvalidUtf8AndNulBytesAreKept) {
  const Tokenizer tokenizer = learn("hello hello", {.vocab_size = 262});
  for (std::string text : {std::string("a\0b\0\0", 5), std::string("\xED\xA0\x80"), std::string("hello\xFFhello\xC3"),
                           std::string("\xF0\x9F"), std::string()})
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.decode_text(tokenizer.encode("a\xFF")), "a\uFFFD");
}

TEST(Tokenizer, Row9OneCharacterAMillionTimes) {
  const Tokenizer tokenizer = learn(std::string(64, 'a') + std::string(64, ' '), {.vocab_size = 256 + 12});
  for (char c : {'a', ' ', '^', '\n', '\xFF', '\0'}) {
    const std::string text(1000000, c);
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids.size(), c == 'a' || c == ' ' ? 1000000u / 64 : 1000000u);
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST(Tokenizer, Row24AMissingByteIsNamed) {
  TokenizerParts parts;
  parts.kind = TokenizerKind::bpe;
  for (int b = 0; b < 256; ++b) parts.tokens.add(b == 0xAD ? "xx" : std::string(1, static_cast<char>(b)));
  EXPECT_EQ(message([&] { Tokenizer{parts}; }),
            "tokenizer: the byte 0xad has no token, so not every text could be encoded; add it to the vocabulary");
}

TEST(Tokenizer, RefusesVocabulariesThatDoNotFit) {
  const auto bad = [](auto change) {
    TokenizerParts parts = learn("abcabc", {.vocab_size = 258, .specials = {}}).parts();
    change(parts);
    return message([&] { Tokenizer{parts}; });
  };
  EXPECT_NE(bad([](auto& p) { p.tokens.add("a"); }).find("97 and 258 are both"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.merges.push_back({'a', 'b', 999}); }).find("no ordinary token"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.merges.push_back({-1, 'b', 256}); }).find("no ordinary token"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.merges.push_back({'x', 'b', 256}); }).find("makes"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.specials = {{"<s>", 7}}; }).find("id of its own"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.specials = {{"<s>", -7}}; }).find("-7"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.specials = {{"<s>", 2000000000}}; }).find("2000000000"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.specials = {{"ab", 300}}; }).find("spelled like"), std::string::npos);
  EXPECT_NE(bad([](auto& p) { p.specials = {{"\xFF", 300}}; }).find("not UTF-8"), std::string::npos);
  EXPECT_EQ(bad([](auto& p) { p.specials = {{"<s>", 300}}; }), "no error");
}

TEST(Tokenizer, IdsOutsideAreRefused) {
  const Tokenizer tokenizer = Tokenizer::bytes({"<s>"});
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  EXPECT_EQ(tokenizer.bytes_of(256), "<s>");
  for (int32_t id : {-1, 257, 2147483647})
    EXPECT_EQ(message([&] {
                tokenizer.decode(Ids{'a', id});
              }),
              fmt::format("decode: no token has the id {}; this tokenizer has the ids 0 to 256", id));
}

TEST(Tokenizer, AVocabularyMaySkipIds) {
  TokenizerParts parts = Tokenizer::bytes().parts();
  parts.specials = {{"<s>", 259}};
  const Tokenizer tokenizer(std::move(parts));
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.gaps(), (Ids{256, 257, 258}));
  for (int32_t id : {0, 255, 259}) EXPECT_TRUE(tokenizer.has(id)) << id;
  for (int32_t id : {-1, 256, 258, 260, 2147483647}) EXPECT_FALSE(tokenizer.has(id)) << id;
  EXPECT_EQ(message([&] {
              tokenizer.decode(Ids{'a', 257});
            }),
            "decode: no token has the id 257; this tokenizer has the ids 0 to 259 and skips some of them");
  EXPECT_TRUE(Tokenizer::bytes({"<s>"}).gaps().empty());
}

TEST(Tokenizer, CharactersAreSortedLikeNanoGpts) {
  const Tokenizer tokenizer = Tokenizer::characters("hello, 季 wörld\n");
  EXPECT_EQ(tokenizer.kind(), TokenizerKind::chars);
  EXPECT_EQ(tokenizer.vocab_size(), 12);  // \n blank , d e h l o r w ö 季
  EXPECT_EQ(tokenizer.bytes_of(0), "\n");
  EXPECT_EQ(tokenizer.bytes_of(11), "季");
  const std::string text = "hold 季ö";
  EXPECT_EQ(tokenizer.encode(text), (Ids{5, 7, 6, 3, 1, 11, 10}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.count(text), 7);
  EXPECT_EQ(
      message([&] { tokenizer.encode("ö☃"); }),
      "encode: the character \"☃\" (U+2603) at byte 2 is not among the 12 characters of this tokenizer; remove it, "
      "or make the tokenizer from a text that has it");
  EXPECT_NE(message([&] { tokenizer.encode("he\xFF"); }).find("byte 0xff at byte 2"), std::string::npos);
  EXPECT_NE(message([] { Tokenizer::characters("a\xC3"); }).find("byte 0xc3 at byte 1"), std::string::npos);
  EXPECT_EQ(Tokenizer::characters("").vocab_size(), 0);
  EXPECT_EQ(Tokenizer::characters("").encode(""), Ids{});
}

TEST(Tokenizer, CharactersWithSpecials) {
  const Tokenizer tokenizer = Tokenizer::characters("ab", {"<s>"});
  EXPECT_EQ(tokenizer.encode("a<s>b", SpecialPolicy::match_all()), (Ids{0, 2, 1}));
  // The place in the message counts from the beginning of the whole text.
  EXPECT_NE(message([&] { tokenizer.encode("a<s>c", SpecialPolicy::match_all()); }).find("at byte 4"),
            std::string::npos);
}

TEST(Tokenizer, FingerprintsFollowWhatDecidesAboutIds) {
  const Tokenizer a = learn("abcabc abd", {.vocab_size = 258});
  EXPECT_EQ(a.fingerprint(), learn("abcabc abd", {.vocab_size = 258}).fingerprint());
  EXPECT_NE(a.fingerprint(), learn("abcabc abd", {.vocab_size = 259}).fingerprint());
  EXPECT_NE(a.fingerprint(), learn("abcabc abd", {.vocab_size = 258, .pattern = Pattern::none}).fingerprint());
  EXPECT_NE(Tokenizer().fingerprint(), Tokenizer::bytes({"<s>"}).fingerprint());
  EXPECT_NE(Tokenizer::bytes({"<s>"}).fingerprint(), Tokenizer::bytes({"<t>"}).fingerprint());
  EXPECT_EQ(a.fingerprint_hex().size(), 16u);
  TokenizerParts parts = a.parts();
  parts.training.corpus_sha256 = "other";
  EXPECT_EQ(Tokenizer(parts).fingerprint(), a.fingerprint());
}

// Past the size from which threads share the work, with and without a piece cache that has to forget.
TEST(Tokenizer, SameIdsOnAnyNumberOfThreads) {
  RandomStream random(5, Purpose::test);
  std::string text;
  while (text.size() < (9u << 20)) {
    for (uint64_t i = 1 + random.below(9); i > 0; --i) text += "etaoinshrdlu"[random.below(12)];
    text += random.below(8) == 0 ? "\n" : " ";
  }
  const Tokenizer tokenizer = learn(std::string_view(text).substr(0, 200000), {.vocab_size = 600});
  set_threads(1);
  const Ids one = tokenizer.encode(text);
  set_threads(3);
  const Ids three = tokenizer.encode(text);
  const int64_t counted = tokenizer.count(text);
  set_threads(0);
  EXPECT_TRUE(one == three);
  EXPECT_EQ(counted, static_cast<int64_t>(one.size()));
  EXPECT_EQ(tokenizer.decode(one), text);
  Ids beginning = encode_by_definition(tokenizer, std::string_view(text).substr(0, 8000));
  beginning.resize(1000);
  EXPECT_EQ(Ids(one.begin(), one.begin() + 1000), beginning);
}

TEST(Tokenizer, EncodesFromSeveralThreadsAtOnce) {
  const Tokenizer tokenizer = learn("the cat sat on the mat with the hat", {.vocab_size = 290});
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "the cat sat on that mat ";
  const Ids expected = tokenizer.encode(text);
  std::vector<Ids> got(4);
  std::vector<std::thread> workers;
  for (Ids& ids : got) workers.emplace_back([&ids, &text, copy = tokenizer] { ids = copy.encode(text); });
  for (std::thread& worker : workers) worker.join();
  for (const Ids& ids : got) EXPECT_EQ(ids, expected);
}

TEST(StreamDecoder, Row22NeverSplitsACharacter) {
  const Tokenizer tokenizer;
  StreamDecoder out(tokenizer);
  for (int32_t id : {0xF0, 0x9F, 0xA4}) EXPECT_EQ(out.push(id), "");
  EXPECT_EQ(out.push(0x97), "🤗");
  EXPECT_EQ(out.push(0xF0), "");
  EXPECT_EQ(out.push('t'), "\uFFFDt");
  EXPECT_EQ(out.push(0xE5), "");
  EXPECT_EQ(out.flush(), "\uFFFD");
  EXPECT_THROW(out.push(256), Error);
}

TEST(StreamDecoder, SpecialTokensKeepTheirText) {
  // Row 19: an added token is its text, not spelled in byte characters.
  const Tokenizer tokenizer = Tokenizer::bytes({"ilÖveyou", "đem", "<č>"});
  StreamDecoder out(tokenizer);
  EXPECT_EQ(out.push(256) + out.push(257) + out.push(258), "ilÖveyouđem<č>");
}

}  // namespace
}  // namespace bary
