// SPDX-License-Identifier: Apache-2.0
// Logits do not depend on how a text comes: all at once, in chunks through the cache, token by token, alone or beside
// other texts; past the first block of 256 keys too.
#include <algorithm>

#include "bary/generate/generate.h"
#include "bary/tensor/tap.h"
#include "small_run.h"

namespace bary::same_bits {
namespace {

constexpr int64_t kText = 300;

struct Case {
  std::string name;
  ModelConfig config;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::pair<const char*, Position> positions[] = {{"none", Position::none},
                                                        {"learned", Position::learned},
                                                        {"sinusoidal", Position::sinusoidal},
                                                        {"rotary", Position::rotary},
                                                        {"alibi", Position::alibi}};
  ModelConfig base;
  base.vocab_size = 61, base.block_size = 16, base.context = kText, base.n_layer = 2, base.n_embd = 32,
  base.mlp_ratio = 2;
  for (auto [pos_name, pos] : positions) {
    for (int64_t window : {0, 40}) {
      for (int64_t kv : {4, 2, 1}) {
        ModelConfig c = base;
        c.pos = pos, c.n_kv_head = kv;
        if (window) c.mask = Mask::window, c.window = window;
        all.push_back({fmt::format("{}_{}_kv{}", pos_name, window ? "window" : "causal", kv), c});
      }
    }
    ModelConfig c = base;
    c.pos = pos, c.mixer = Mixer::average;
    all.push_back({fmt::format("{}_average", pos_name), c});
  }
  for (auto [name, norm] : {std::pair{"block_post", NormPlace::post},
                            {"block_none", NormPlace::none},
                            {"block_parallel", NormPlace::parallel}}) {
    ModelConfig c = base;
    c.norm = norm, c.pos = Position::rotary, c.norm_kind = NormKind::rms, c.mlp = MlpKind::swiglu, c.d_head = 6;
    all.push_back({name, c});
  }
  return all;
}

// By what positions are told apart; each test goes through all cases of that name.
class Prefill : public testing::TestWithParam<std::string> {
 protected:
  template <class F>
  void each(F f) const {
    for (const Case& c : cases()) {
      if (c.name.rfind(GetParam() + "_", 0) != 0) continue;
      SCOPED_TRACE(c.name);
      f(c.config);
    }
  }
  Threads one{1};  // the fastest for models this small
};

TEST_P(Prefill, AnyChunksGiveTheFullPass) {
  each([&](const ModelConfig& config) {
    LanguageModel model(config, 3);
    const std::vector<int32_t> ids = made_up_tokens(kText, 61);
    const std::vector<float> full = model.logits(ids, 1).to_vector();
    for (int64_t chunk : {1, 7, 64, 299}) {
      KvCache cache = model.make_cache(1, kText);
      Pass pass;
      pass.cache = &cache;
      std::vector<float> parts;
      for (int64_t at = 0; at < kText; at += chunk) {
        auto piece = std::span(ids).subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(chunk, kText - at)));
        const std::vector<float> logits = model.logits(piece, 1, pass).to_vector();
        parts.insert(parts.end(), logits.begin(), logits.end());
      }
      EXPECT_TRUE(same_bits(parts, full)) << "chunks of " << chunk;
      EXPECT_EQ(cache.length, kText);
    }
  });
}

TEST_P(Prefill, NeighboursInTheBatchDoNotMatter) {
  each([&](const ModelConfig& config) {
    LanguageModel model(config, 3);
    const int64_t T = 270;
    std::vector<int32_t> together, texts[3];
    std::vector<float> alone;
    for (uint64_t b = 0; b < 3; ++b) {
      texts[b] = made_up_tokens(T, 61, b + 1);
      together.insert(together.end(), texts[b].begin(), texts[b].end());
      const std::vector<float> logits = model.logits(texts[b], 1).to_vector();
      alone.insert(alone.end(), logits.begin(), logits.end());
    }
    EXPECT_TRUE(same_bits(model.logits(together, 3).to_vector(), alone));
    KvCache cache = model.make_cache(3, T);  // and side by side through one cache
    Pass pass;
    pass.cache = &cache;
    std::vector<int32_t> first, rest;
    for (const auto& text : texts) {
      first.insert(first.end(), text.begin(), text.begin() + 200);
      rest.insert(rest.end(), text.begin() + 200, text.end());
    }
    const std::vector<float> a = model.logits(first, 3, pass).to_vector(), b = model.logits(rest, 3, pass).to_vector();
    std::vector<float> both;
    for (int64_t i = 0; i < 3; ++i) {
      both.insert(both.end(), a.begin() + i * 200 * 61, a.begin() + (i + 1) * 200 * 61);
      both.insert(both.end(), b.begin() + i * 70 * 61, b.begin() + (i + 1) * 70 * 61);
    }
    EXPECT_TRUE(same_bits(both, alone));
  });
}

TEST_P(Prefill, AShorterTextIsThePrefixOfALonger) {  // of a causal model, with another length of the call
  each([&](const ModelConfig& config) {
    LanguageModel model(config, 3);
    const std::vector<int32_t> ids = made_up_tokens(kText, 61);
    const std::vector<float> full = model.logits(ids, 1).to_vector();
    for (size_t n : {1, 5, 100, 256, 257}) {
      EXPECT_TRUE(same_bits(model.logits(std::span(ids).first(n), 1).to_vector(), std::span(full).first(n * 61))) << n;
    }
  });
}

TEST_P(Prefill, GenerationIsTheSameWithAndWithoutCache) {
  each([&](const ModelConfig& config) {
    const Tokenizer byte = Tokenizer::bytes();
    ModelConfig c = config;
    c.vocab_size = 256;
    LanguageModel bytes(c, 3);
    GenerateOptions o;
    o.max_new_tokens = 20, o.sampler.temperature = 1.5, o.seed = 7;
    const std::string prompt(240, 'x');  // generation passes the first block of 256 keys
    const auto with = generate(bytes, byte, {prompt}, o);
    for (int64_t chunk : {7, 0}) {
      GenerateOptions other = o;
      other.prefill_chunk = chunk, other.cache = chunk != 0;
      EXPECT_EQ(generate(bytes, byte, {prompt}, other)[0].ids, with[0].ids) << chunk;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Every, Prefill, testing::Values("none", "learned", "sinusoidal", "rotary", "alibi", "block"),
                         [](const auto& which) { return which.param; });

TEST(Watching, APatternThatIsLookedAtChangesNothing) {
  for (int64_t T : {40, 300}) {
    ModelConfig c;
    c.vocab_size = 61, c.block_size = T, c.n_embd = 32, c.n_layer = 2;
    LanguageModel model(c, 3);
    const std::vector<int32_t> ids = made_up_tokens(T, 61);
    const std::vector<float> alone = model.logits(ids, 1).to_vector();
    Probe probe;
    std::vector<float> pattern;
    probe.look("blocks.1.attn.hook_pattern", [&](const Tensor& p) { pattern = p.to_vector(); });
    EXPECT_TRUE(same_bits(model.logits(ids, 1).to_vector(), alone)) << T;
    ASSERT_EQ(static_cast<int64_t>(pattern.size()), 4 * T * T);
    for (int64_t t = 0; t < 4 * T; ++t) {  // rows of weights that sum to 1, zero after the diagonal
      double sum = 0;
      for (int64_t j = 0; j < T; ++j) {
        const float p = pattern[static_cast<size_t>(t * T + j)];
        sum += p;
        if (j > t % T) {
          ASSERT_EQ(p, 0.0f) << t << " " << j;
        }
      }
      ASSERT_NEAR(sum, 1, 16 * 6e-8) << t;
    }
  }
}

// Flushed to zero in workers, so in the caller's thread too: numbers too small for a normal float must not decide.
TEST(Denormals, AreTreatedAlikeInEveryThread) {
  ModelConfig c;
  c.vocab_size = 16, c.block_size = 8, c.n_embd = 16, c.mixer = Mixer::average, c.mlp = MlpKind::none;
  c.norm = NormPlace::none, c.pos = Position::none, c.head_bias = false;
  LanguageModel model(c, 3);
  Parameters& p = model.parameters();
  for (float& v : p.values_of(*p.find("transformer.wte.weight"))) v = 1e-39f * v;
  for (float& v : p.values_of(*p.find("lm_head.weight"))) v = 1e35f * v;
  p.changed();
  const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> here = model.logits(ids, 1).to_vector();
  std::vector<std::vector<float>> there(4);
  parallel_tasks(4, [&](int64_t i, int) { there[static_cast<size_t>(i)] = model.logits(ids, 1).to_vector(); });
  for (const auto& t : there) EXPECT_TRUE(same_bits(here, t));
}

}  // namespace
}  // namespace bary::same_bits
