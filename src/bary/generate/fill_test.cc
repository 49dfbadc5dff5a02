// SPDX-License-Identifier: Apache-2.0
// An encoder without blocks says of a gap only what its position says: with one-hot tables every answer can be written
// down.
#include "bary/generate/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "bary/base/parallel.h"

namespace bary {
namespace {

struct Answer {
  int64_t position;
  int32_t id;
  float logit;
};

// Logits are 0 but for these, whatever the text is.
LanguageModel answering(int64_t V, int64_t positions, const std::vector<Answer>& answers) {
  ModelConfig c;
  c.arch = Arch::encoder, c.vocab_size = V, c.block_size = positions, c.n_embd = positions, c.n_head = 1, c.n_layer = 0;
  LanguageModel model(c, 1);
  Parameters& p = model.parameters();
  std::fill_n(p.values(), p.size(), 0.0f);
  auto places = p.values_of(*p.find("transformer.wpe.weight")), head = p.values_of(*p.find("lm_head.weight"));
  for (int64_t t = 0; t < positions; ++t) places[static_cast<size_t>(t * positions + t)] = 1;
  for (const Answer& a : answers) head[static_cast<size_t>(a.id * positions + a.position)] = a.logit;
  p.changed();
  return model;
}

LanguageModel small_encoder(int64_t V, Position pos = Position::learned) {
  ModelConfig c;
  c.arch = Arch::encoder, c.vocab_size = V, c.block_size = 12, c.n_embd = 32, c.n_head = 2, c.n_layer = 2, c.pos = pos;
  return LanguageModel(c, 7);
}

Tokenizer masked_bytes() { return Tokenizer::bytes({"[MASK]"}); }  // 256: the mask

// "to", " be", " or", " not" and others are tokens of it
Tokenizer words() {
  const std::string text = "to be or not to be or not to be or not to be";
  const std::vector<std::string_view> documents{text};
  BpeOptions o;
  o.vocab_size = 266, o.specials = {"[MASK]"};
  return Tokenizer::bpe(train_bpe(documents, o), o);
}
int32_t id_of(const Tokenizer& t, const std::string& text) {
  const auto ids = t.encode(text);
  EXPECT_EQ(ids.size(), 1u) << text << " is no token";
  return ids[0];
}

std::string message(const std::function<void()>& f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Fill, EveryGapHasItsOwnProposals) {
  LanguageModel model = answering(257, 8, {{1, 'b', 3}, {1, 'x', 2}, {3, 'd', 5}, {0, 'z', 9}});
  const Filled f = fill(model, masked_bytes(), "a[MASK]c[MASK]", {.top_k = 2});
  EXPECT_EQ(f.text, "abcd");
  EXPECT_EQ(f.ids, (std::vector<int32_t>{'a', 256, 'c', 256}));
  ASSERT_EQ(f.gaps.size(), 2u);
  EXPECT_EQ(f.gaps[0].position, 1);
  EXPECT_EQ(f.gaps[1].position, 3);
  ASSERT_EQ(f.gaps[0].proposals.size(), 2u);
  EXPECT_EQ(f.gaps[0].proposals[0].id, 'b');
  EXPECT_EQ(f.gaps[0].proposals[1].text, "x");
  const double sum = std::exp(3.0) + std::exp(2.0) + 255;
  EXPECT_NEAR(f.gaps[0].proposals[0].probability, std::exp(3.0) / sum, 1e-6);
  EXPECT_NEAR(f.gaps[0].proposals[1].probability, std::exp(2.0) / sum, 1e-6);
  EXPECT_NEAR(f.gaps[1].proposals[0].probability, std::exp(5.0) / (std::exp(5.0) + 256), 1e-6);
}

TEST(Fill, TiesGoToTheLowestId) {
  LanguageModel model = answering(257, 4, {{0, 'q', 2}, {0, 'm', 2}, {0, 'r', 2}});
  const auto p = fill(model, masked_bytes(), "[MASK]", {.top_k = 5}).gaps[0].proposals;
  std::vector<int32_t> ids;
  for (const Proposal& one : p) ids.push_back(one.id);
  EXPECT_EQ(ids, (std::vector<int32_t>{'m', 'q', 'r', 0, 1}));
}

TEST(Fill, SpecialTokensAreNeverProposed) {
  const Tokenizer t = Tokenizer::bytes({"[MASK]", "<|endoftext|>"});
  LanguageModel model = answering(300, 16, {{0, 256, 9}, {0, 257, 8}, {0, 280, 20}, {0, 'a', 7}});
  const auto p = fill(model, t, "[MASK]", {.top_k = 1000}).gaps[0].proposals;
  EXPECT_EQ(p.size(), 256u);
  EXPECT_EQ(p[0].id, 'a');
  double sum = 0;
  for (const Proposal& one : p) {
    EXPECT_LT(one.id, 256);
    sum += one.probability;
  }
  // their share stays theirs; ids past the tokenizer's (280) have none
  const double others = std::exp(9.0) + std::exp(8.0), rest = std::exp(7.0) + 255;
  EXPECT_NEAR(sum, rest / (rest + others), 1e-5);
}

TEST(Fill, TextOfOtherSpecialTokensIsText) {
  const Tokenizer t = Tokenizer::bytes({"<|endoftext|>", "[MASK]"});
  LanguageModel model = answering(258, 16, {{13, '!', 1}});
  const Filled f = fill(model, t, "<|endoftext|>[MASK]");
  EXPECT_EQ(f.ids.size(), 14u);
  EXPECT_EQ(f.ids[13], 257);
  EXPECT_EQ(f.text, "<|endoftext|>!");
}

TEST(Fill, TheSpaceBeforeAWordBelongsToItsGap) {
  const Tokenizer t = words();
  const int32_t be = id_of(t, " be"), mask = *t.special_id("[MASK]");
  LanguageModel model = answering(t.vocab_size(), 12, {{1, 'x', 9}, {1, be, 5}, {0, be, 5}, {2, be, 5}});
  const Filled f = fill(model, t, "to [MASK] or", {.top_k = 1000});
  EXPECT_EQ(f.ids, (std::vector<int32_t>{id_of(t, "to"), mask, id_of(t, " or")})) << "as it stood in training";
  EXPECT_EQ(f.text, "to be or");
  for (const Proposal& p : f.gaps[0].proposals) EXPECT_EQ(p.text[0], ' ');
  const double sum = std::exp(9.0) + std::exp(5.0) + t.vocab_size() - 2;
  EXPECT_NEAR(f.gaps[0].proposals[0].probability, std::exp(5.0) / sum, 1e-6) << "the model's own, not a share of these";
  // written without the space, anything goes
  EXPECT_EQ(fill(model, t, "to[MASK] or").text, "tox or");
  // one space is the word's, others are the text's
  EXPECT_EQ(fill(model, t, "to  [MASK]").ids, (std::vector<int32_t>{id_of(t, "to"), ' ', mask}));
  EXPECT_EQ(fill(model, t, "to  [MASK]").text, "to  be");
  EXPECT_EQ(fill(model, t, " [MASK]").ids, (std::vector<int32_t>{mask}));
  EXPECT_EQ(fill(model, t, " [MASK]").text, " be");
  EXPECT_EQ(fill(model, t, "to\n[MASK]").ids.size(), 3u);
}

TEST(Fill, SpacesStayWhereTokensHaveNone) {
  LanguageModel model = answering(257, 8, {{2, 'b', 1}});
  EXPECT_EQ(fill(model, masked_bytes(), "a [MASK]").ids, (std::vector<int32_t>{'a', ' ', 256}));
  EXPECT_EQ(fill(model, masked_bytes(), "a [MASK]").text, "a b");
  const Tokenizer characters = Tokenizer::characters("ab \u00e9", {"[MASK]"});  // ids by code: ' ', a, b, e acute
  LanguageModel other = answering(5, 8, {{2, 3, 1}});
  EXPECT_EQ(fill(other, characters, "a [MASK]").text, "a \u00e9");
}

TEST(Fill, WhatIsNoGapIsLeftAlone) {
  const Tokenizer t = words();
  LanguageModel model = small_encoder(t.vocab_size(), Position::rotary);
  for (const std::string text :
       {"[MASK]", "to [MASK]", "[MASK] [MASK]", "a  [MASK]\n[MASK]b ", "[MASK][MASK] \xff [MASK]\n",
        "[MASK [MASK]] to be or [MASK] to be, to be or not to be"}) {
    const Filled f = fill(model, t, text);
    std::string rebuilt;
    size_t at = 0, gap = 0;
    for (size_t mask; (mask = text.find("[MASK]", at)) != std::string::npos; at = mask + 6) {
      rebuilt += text.substr(at, mask - at);
      const std::string& word = f.gaps[gap++].proposals[0].text;
      const bool spaced = mask > at && text[mask - 1] == ' ';
      rebuilt += spaced ? word.substr(1) : word;
    }
    EXPECT_EQ(f.text, rebuilt + text.substr(at));
    EXPECT_EQ(gap, f.gaps.size());
  }
}

TEST(Fill, TheSameBitsOnAnyNumberOfThreads) {
  const Tokenizer t = words();
  std::vector<std::vector<double>> seen;
  const int before = threads();
  for (int n : {1, 2, 3}) {
    set_threads(n);
    LanguageModel model = small_encoder(t.vocab_size());
    seen.emplace_back();
    for (const Gap& gap : fill(model, t, "to be [MASK] not to [MASK]", {.top_k = 300}).gaps)
      for (const Proposal& p : gap.proposals) seen.back().push_back(p.probability);
  }
  set_threads(before);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(Fill, LearnedPositionsEndAndOthersDoNot) {
  const Tokenizer t = masked_bytes();
  LanguageModel model = small_encoder(257);
  EXPECT_EQ(fill(model, t, "0123456789a[MASK]").gaps[0].position, 11);
  const std::string refused = message([&] { fill(model, t, "0123456789ab[MASK]"); });
  EXPECT_TRUE(has(refused, "13 tokens") && has(refused, "12 positions") && has(refused, "--context")) << refused;
  for (Position pos : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi}) {
    LanguageModel endless = small_encoder(257, pos);
    EXPECT_EQ(fill(endless, t, std::string(100, 'a') + "[MASK]").gaps[0].position, 100);
  }
}

TEST(Fill, Refusals) {
  const Tokenizer t = masked_bytes();
  LanguageModel model = small_encoder(257);
  EXPECT_TRUE(has(message([&] { fill(model, t, ""); }), "the text is empty"));
  const std::string none = message([&] { fill(model, t, "to be or [mask]"); });
  EXPECT_TRUE(has(none, "no gap") && has(none, "[MASK]")) << none;
  const std::string unknown = message([&] { fill(model, Tokenizer::bytes(), "a [MASK]"); });
  EXPECT_TRUE(has(unknown, "tokenizer has no token [MASK]")) << unknown;
  EXPECT_TRUE(has(message([&] { fill(model, t, "[MASK]", {.top_k = 0}); }), "top_k is 0"));
  LanguageModel narrow = small_encoder(200);
  const std::string apart = message([&] { fill(narrow, t, "[MASK]"); });
  EXPECT_TRUE(has(apart, "257") && has(apart, "200")) << apart;
  ModelConfig c;
  c.vocab_size = 257, c.n_embd = 8, c.n_head = 1, c.block_size = 4;
  LanguageModel decoder(c, 1);
  const std::string arch = message([&] { fill(decoder, t, "[MASK]"); });
  EXPECT_TRUE(has(arch, "arch=decoder") && has(arch, "--arch encoder")) << arch;
}

TEST(Fill, AMaskInsideAnotherTokenIsNoGap) {
  TokenizerParts parts = masked_bytes().parts();
  parts.specials.push_back({"x[MASK]", 257, false});
  LanguageModel model = small_encoder(258);
  const std::string refused = message([&] { fill(model, Tokenizer(parts), "a[MASK]x[MASK]"); });
  EXPECT_TRUE(has(refused, "1 of the text's 2")) << refused;
}

TEST(Fill, DamagedWeightsAreToldApart) {
  LanguageModel model = small_encoder(257);
  model.parameters().values()[0] = std::numeric_limits<float>::quiet_NaN();  // of the byte 0
  model.parameters().changed();
  EXPECT_EQ(fill(model, masked_bytes(), "a[MASK]").gaps.size(), 1u);
  EXPECT_TRUE(
      has(message([&] { fill(model, masked_bytes(), std::string("\0[MASK]", 7)); }, ErrorKind::numeric), "not finite"));
}

}  // namespace
}  // namespace bary
