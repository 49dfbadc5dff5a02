// SPDX-License-Identifier: Apache-2.0
// A model without blocks is a table of "what follows what": with one-hot rows it says any text whose bytes are all
// different, so every border case of generation can be written down.
#include "bary/generate/generate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "bary/base/parallel.h"
#include "bary/tensor/tap.h"

namespace bary {
namespace {

std::unique_ptr<LanguageModel> speaker(const std::string& text, int64_t V = 256, int64_t context = 0) {
  ModelConfig c;
  c.vocab_size = V, c.n_embd = V, c.n_head = 1, c.n_layer = 0, c.block_size = context ? context : 8,
  c.head_bias = false;
  c.pos = context ? Position::learned : Position::none;
  auto model = std::make_unique<LanguageModel>(c, 1);
  Parameters& p = model->parameters();
  std::fill_n(p.values(), p.size(), 0.0f);
  auto table = p.values_of(*p.find("transformer.wte.weight")), head = p.values_of(*p.find("lm_head.weight"));
  for (int64_t i = 0; i < V; ++i) table[static_cast<size_t>(i * V + i)] = 1;
  for (size_t i = 0; i + 1 < text.size(); ++i)
    head[static_cast<uint8_t>(text[i + 1]) * static_cast<size_t>(V) + static_cast<uint8_t>(text[i])] = 40;
  p.changed();
  return model;
}

GenerateOptions greedy(int64_t n, std::vector<std::string> stop = {}) {
  GenerateOptions o;
  o.max_new_tokens = n, o.sampler.temperature = 0, o.stop = std::move(stop);
  return o;
}

Generated say(LanguageModel& model, const std::string& prompt, const GenerateOptions& o,
              const Tokenizer& t = Tokenizer::bytes()) {
  return generate(model, t, {prompt}, o)[0];
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "was accepted";
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Generate, SaysWhatTheModelSays) {
  auto model = speaker("abcdefgh");
  const Generated g = say(*model, "a", greedy(5));
  EXPECT_EQ(g.text, "bcdef");
  EXPECT_EQ(g.ids, (std::vector<int32_t>{'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(g.finish, Finish::length);
  EXPECT_EQ(g.prompt_tokens, 1);
}

TEST(Generate, NothingIfNothingIsAsked) {
  auto model = speaker("abc");
  const Generated g = say(*model, "a", greedy(0));
  EXPECT_EQ(g.text, "");
  EXPECT_EQ(g.finish, Finish::length);
  EXPECT_TRUE(generate(*model, Tokenizer::bytes(), {}, greedy(3)).empty());
  EXPECT_TRUE(has(message([&] { say(*model, "a", greedy(-1)); }), "max_new_tokens: got -1"));
}

TEST(Generate, StopsBeforeAStringThatSpansTokens) {
  auto model = speaker("abcSTOPxyz");
  std::string spoken;
  GenerateOptions o = greedy(9, {"STOP"});
  o.on_text = [&](size_t, const std::string& t) { spoken += t; };
  const Generated g = say(*model, "a", o);
  EXPECT_EQ(g.text, "bc");
  EXPECT_EQ(spoken, "bc") << "nothing of a stop string is ever shown";
  EXPECT_EQ(g.finish, Finish::stop);
  EXPECT_EQ(g.ids.size(), 6u);
}

TEST(Generate, WhatOnlyBeganAsAStopStringIsShown) {
  auto model = speaker("abcSTOPxyz");
  std::string spoken;
  GenerateOptions o = greedy(9, {"STOQ", "zz", ""});
  o.on_text = [&](size_t, const std::string& t) { spoken += t; };
  EXPECT_EQ(say(*model, "a", o).text, "bcSTOPxyz");
  EXPECT_EQ(spoken, "bcSTOPxyz");
  o = greedy(4, {"STOP"});  // the text ends while the stop string is still possible
  EXPECT_EQ(say(*model, "a", o).text, "bcST");
  EXPECT_EQ(say(*model, "a", o).finish, Finish::length);
}

TEST(Generate, TheFirstOfSeveralStopStringsCounts) {
  auto model = speaker("abcdefg");
  EXPECT_EQ(say(*model, "a", greedy(6, {"def", "cde"})).text, "b");
  EXPECT_EQ(say(*model, "a", greedy(6, {"f", "def"})).text, "bc");
  EXPECT_EQ(say(*model, "a", greedy(6, {"b"})).text, "");
}

TEST(Generate, AStopTokenEndsIt) {
  auto model = speaker("abcdefg");
  GenerateOptions o = greedy(6);
  o.stop_token = 'e';
  const Generated g = say(*model, "a", o);
  EXPECT_EQ(g.text, "bcd");
  EXPECT_EQ(g.finish, Finish::stop);
}

TEST(Generate, NeverSplitsACharacter) {
  const std::string text = "a\u00e9\u20ac\U0001F600z";  // two, three and four bytes, all different
  auto model = speaker(text);
  std::vector<std::string> pieces;
  GenerateOptions o = greedy(static_cast<int64_t>(text.size()) - 1);
  o.on_text = [&](size_t, const std::string& t) { pieces.push_back(t); };
  EXPECT_EQ(say(*model, "a", o).text, text.substr(1));
  EXPECT_EQ(pieces, (std::vector<std::string>{"\u00e9", "\u20ac", "\U0001F600", "z"}));
}

TEST(Generate, WhatIsCutInsideACharacterIsReplaced) {
  auto model = speaker("a\u20acz");
  EXPECT_EQ(say(*model, "a", greedy(2)).text, "\ufffd");
  EXPECT_EQ(say(*model, "a", greedy(2)).ids, (std::vector<int32_t>{0xe2, 0x82}));
  EXPECT_EQ(say(*model, "a", greedy(2, {"\ufffd"})).text, "") << "a stop string at the very end counts";
  // a prompt that ends inside one: the rest alone is no character
  EXPECT_EQ(say(*model, "a\xe2\x82", greedy(2)).text, "\ufffdz");
}

TEST(Generate, AStopStringOfManyBytesInsideACharacter) {
  auto model = speaker("a\u20acz");
  EXPECT_EQ(say(*model, "a", greedy(4, {"\u20ac"})).text, "");
  EXPECT_EQ(say(*model, "a", greedy(4, {"\u20acz"})).text, "");
}

TEST(Generate, AnEmptyPromptNeedsAStartToken) {
  auto model = speaker("abc", 257);
  EXPECT_TRUE(has(message([&] { say(*model, "", greedy(1)); }), "the prompt is empty"));
  const Tokenizer t = Tokenizer::bytes({"<|endoftext|>"});
  const Generated g = say(*model, "", greedy(1), t);
  EXPECT_EQ(g.prompt_tokens, 1);
  EXPECT_EQ(g.ids.size(), 1u);
}

TEST(Generate, StopsWhereLearnedPositionsEnd) {
  auto model = speaker("abcdefghijklmn", 256, 5);
  const Generated g = say(*model, "abc", greedy(9));
  EXPECT_EQ(g.text, "def") << "positions 0 to 4 predict up to the sixth token";
  EXPECT_EQ(g.finish, Finish::context);
  EXPECT_EQ(say(*model, "abcde", greedy(9)).text, "f");
  EXPECT_EQ(say(*model, "abcde", greedy(1)).finish, Finish::length);
  GenerateOptions o = greedy(9);
  o.cache = false;
  EXPECT_EQ(say(*model, "abc", o).text, "def");
  const std::string refused = message([&] { say(*model, "abcdef", greedy(1)); });
  EXPECT_TRUE(has(refused, "5 positions") && has(refused, "6 are asked")) << refused;
}

TEST(Generate, WithoutLearnedPositionsThereIsNoEnd) {
  for (Position pos : {Position::none, Position::sinusoidal, Position::rotary, Position::alibi}) {
    ModelConfig c;
    c.vocab_size = 256, c.block_size = 4, c.n_embd = 8, c.n_head = 2, c.pos = pos;
    LanguageModel model(c, 1);
    const Generated g = say(model, "abcdefg", greedy(20));
    EXPECT_EQ(g.ids.size(), 20u);
    EXPECT_EQ(g.finish, Finish::length);
  }
}

TEST(Generate, PaddingOfTheVocabularyIsNeverSaid) {
  auto model = speaker("abc", 300);
  auto head = model->parameters().values_of(*model->parameters().find("lm_head.weight"));
  for (size_t id = 256; id < 300; ++id) std::fill_n(head.begin() + static_cast<int64_t>(id) * 300, 300, 100.0f);
  model->parameters().changed();
  GenerateOptions o = greedy(50);
  EXPECT_EQ(say(*model, "a", greedy(2)).text, "bc");
  o.sampler.temperature = 2;
  for (int32_t id : say(*model, "a", o).ids) EXPECT_LT(id, 256);
}

TEST(Generate, IdsThatTheTokenizerSkipsAreNeverSaid) {
  TokenizerParts parts = Tokenizer::bytes().parts();
  parts.specials = {{"<s>", 299}};
  const Tokenizer skipping(std::move(parts));
  auto model = speaker("abc", 300);
  auto head = model->parameters().values_of(*model->parameters().find("lm_head.weight"));
  for (size_t id = 256; id < 299; ++id) std::fill_n(head.begin() + static_cast<int64_t>(id) * 300, 300, 100.0f);
  model->parameters().changed();
  GenerateOptions o = greedy(50);
  EXPECT_EQ(say(*model, "a", greedy(2), skipping).text, "bc");
  o.sampler.temperature = 2, o.sampler.repetition_penalty = 1.5;
  for (int32_t id : say(*model, "a", o, skipping).ids) EXPECT_TRUE(skipping.has(id)) << id;
  o.sampler.top_k = 280;
  for (int32_t id : say(*model, "a", o, skipping).ids) EXPECT_TRUE(skipping.has(id)) << id;
}

TEST(Generate, ATextThatCouldNotBeHeldIsRefused) {
  for (Position pos : {Position::sinusoidal, Position::rotary, Position::alibi}) {
    ModelConfig c;
    c.vocab_size = 256, c.n_embd = 8, c.n_head = 2, c.pos = pos;
    LanguageModel model(c, 1);
    const std::string refused = message([&] { say(model, "a", greedy(1000000000)); });
    EXPECT_TRUE(has(refused, "1000000001 positions")) << refused;
    EXPECT_TRUE(has(refused, pos == Position::alibi ? "64 GB" : "at most 33554432")) << refused;
  }
  auto model = speaker("abcdefgh", 256, 5);  // positions that end
  EXPECT_EQ(say(*model, "a", greedy(1000000000)).finish, Finish::context);
}

TEST(Generate, ATokenizerThatIsTooLargeIsRefused) {
  auto model = speaker("abc", 200);
  const std::string refused = message([&] { say(*model, "a", greedy(1)); });
  EXPECT_TRUE(has(refused, "256") && has(refused, "200")) << refused;
}

TEST(Generate, OptionsAreCheckedBeforeAnythingRuns) {
  auto model = speaker("abc");
  GenerateOptions o = greedy(1);
  o.sampler.temperature = -1;
  EXPECT_TRUE(has(message([&] { say(*model, "a", o); }), "temperature"));
}

TEST(Generate, DamagedWeightsAreSaid) {
  auto model = speaker("abc");
  model->parameters().values()[0] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(model->parameters().values(), model->parameters().size(), std::numeric_limits<float>::quiet_NaN());
  model->parameters().changed();
  try {
    say(*model, "a", greedy(1));
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::numeric) << e.what();
  }
}

TEST(Generate, CancelledBetweenTokens) {
  auto model = speaker("abcdefgh");
  int asked = 0;
  GenerateOptions o = greedy(7);
  o.cancelled = [&] { return ++asked > 3; };
  const Generated g = say(*model, "a", o);
  EXPECT_EQ(g.text, "bcd");
  EXPECT_EQ(g.finish, Finish::cancelled);
}

ModelConfig small() {
  ModelConfig c;
  c.vocab_size = 256, c.block_size = 64, c.n_embd = 16, c.n_head = 2, c.pos = Position::rotary;
  return c;
}

TEST(Generate, APromptsTextDoesNotDependOnTheOthers) {
  LanguageModel model(small(), 5);
  const Tokenizer t = Tokenizer::bytes();
  GenerateOptions o;
  o.max_new_tokens = 20;
  const auto all = generate(model, t, {"one", "two two", "3"}, o);
  EXPECT_EQ(generate(model, t, {"one"}, o)[0].ids, all[0].ids);
  EXPECT_EQ(generate(model, t, {"else", "two two"}, o)[1].ids, all[1].ids);
  EXPECT_EQ(generate(model, t, {"x", "y", "3", "z"}, o)[2].ids, all[2].ids);
  const auto twins = generate(model, t, {"one", "one"}, o);
  EXPECT_NE(twins[0].ids, twins[1].ids) << "the same prompt twice is two samples";
}

TEST(Generate, SeveralPromptsAtOnceAreEachAlone) {
  LanguageModel model(small(), 5);
  const Tokenizer t = Tokenizer::bytes();
  const std::vector<std::string> prompts{"one", "two two", "3", std::string(40, 'z')};
  std::vector<std::string> spoken(prompts.size());
  GenerateOptions o = greedy(20);
  o.on_text = [&](size_t i, const std::string& text) { spoken[i] += text; };
  const auto all = generate(model, t, prompts, o);
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(say(model, prompts[i], greedy(20)).ids, all[i].ids);
    EXPECT_EQ(spoken[i], all[i].text);
  }
}

TEST(Generate, AnEditActsOnAllPromptsWithAnyThreads) {
  LanguageModel model(small(), 5);
  const Tokenizer t = Tokenizer::bytes();
  const std::vector<std::string> prompts{"one", "two two", "3", "forty"};
  GenerateOptions o;
  o.max_new_tokens = 10;
  auto texts = [&] {
    std::vector<std::vector<int32_t>> ids;
    for (const Generated& g : generate(model, t, prompts, o)) ids.push_back(g.ids);
    return ids;
  };
  const auto intact = texts();
  std::vector<std::vector<int32_t>> one;
  const auto edited = [&](int n) {
    set_threads(n);
    Probe probe;
    probe.edit("hook_embed", [](const Tensor& x) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that other threads would find work left
      return x * 30.0f;
    });
    return texts();
  };
  one = edited(1);
  EXPECT_EQ(edited(3), one);
  set_threads(0);
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_NE(one[i], intact[i]) << prompts[i];
}

TEST(Generate, SeedsNameTexts) {
  LanguageModel model(small(), 5);
  GenerateOptions o;
  o.max_new_tokens = 30;
  const auto once = say(model, "x", o).ids;
  EXPECT_EQ(say(model, "x", o).ids, once);
  o.max_new_tokens = 10;
  EXPECT_EQ(say(model, "x", o).ids, std::vector<int32_t>(once.begin(), once.begin() + 10))
      << "a prefix of the longer text";
  o.seed = 2;
  EXPECT_NE(say(model, "x", o).ids, std::vector<int32_t>(once.begin(), once.begin() + 10));
}

TEST(Generate, AModelThatSeesTheFutureRunsWithoutCache) {
  ModelConfig c = small();
  c.mask = Mask::full;
  LanguageModel model(c, 5);
  EXPECT_EQ(say(model, "abc", greedy(5)).ids.size(), 5u);
  EXPECT_TRUE(has(message([&] { model.make_cache(1, 8); }), "mask=full"));
}

TEST(Generate, AnEncoderHasNothingToGoOnFrom) {
  ModelConfig c = small();
  c.arch = Arch::encoder;
  LanguageModel model(c, 5);
  const std::string refused = message([&] { say(model, "abc", greedy(5)); });
  EXPECT_TRUE(has(refused, "encoder") && has(refused, "sees the whole text") && has(refused, "bary fill")) << refused;
}

}  // namespace
}  // namespace bary
