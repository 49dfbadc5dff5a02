// SPDX-License-Identifier: Apache-2.0
#include "bary/model/encoder_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/model/count.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

constexpr int64_t kV = 13, kSourceV = 17, kLongest = 12;

ModelConfig small() {
  ModelConfig c;
  c.arch = Arch::encoder_decoder, c.vocab_size = kV, c.source_vocab_size = kSourceV, c.block_size = kLongest;
  c.n_layer = 2, c.n_head = 2, c.n_embd = 16, c.mlp_ratio = 2, c.mlp = MlpKind::relu, c.pos = Position::sinusoidal;
  c.qkv_bias = c.embed_scale = true;
  return c;
}

// What changes how positions mix or where norms stand
std::vector<std::pair<std::string, ModelConfig>> variants() {
  std::vector<std::pair<std::string, ModelConfig>> all{
      {"2017's", small()}, {"post", small()}, {"rotary", small()}, {"alibi", small()}, {"window", small()}};
  all[1].second.norm = NormPlace::post, all[1].second.pos = Position::learned, all[1].second.embed_scale = false;
  all[2].second.pos = Position::rotary, all[2].second.n_kv_head = 1, all[2].second.n_encoder_layer = 3;
  all[3].second.pos = Position::alibi, all[3].second.mlp = MlpKind::swiglu, all[3].second.norm_kind = NormKind::rms;
  all[4].second.mask = Mask::window, all[4].second.window = 2, all[4].second.norm = NormPlace::none;
  return all;
}

std::vector<int32_t> words(int64_t n, int64_t V, uint64_t seed) {  // without special tokens
  RandomStream random(seed, Purpose::test);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = 3 + static_cast<int32_t>(random.below(static_cast<uint64_t>(V - 3)));
  return ids;
}

// Pairs of unequal lengths: the longest source beside a middling target, and a target of nothing but its end.
std::vector<CodedPair> some_pairs(const std::vector<std::pair<int64_t, int64_t>>& sizes = {
                                      {7, 3}, {3, 5}, {1, 0}, {5, 1}}) {
  std::vector<CodedPair> pairs;
  for (auto [source, target] : sizes) {
    const uint64_t seed = pairs.size();
    pairs.push_back({words(source - 1, kSourceV, 2 * seed), words(target, kV, 2 * seed + 1)});
    pairs.back().source.push_back(2);
  }
  return pairs;
}

std::vector<float> rows(const Tensor& x, int64_t sequence, int64_t n) {
  std::vector<float> out;
  for (int64_t r = sequence * x.dim(1); r < sequence * x.dim(1) + n; ++r)
    out.insert(out.end(), x.row(r), x.row(r) + x.channels());
  return out;
}

testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return testing::AssertionFailure() << "value " << i << " of " << a.size() << ": " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}
void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(EncoderDecoder, ParametersHaveHuggingFacesNames) {
  const EncoderDecoder model(small(), 2);
  for (const char* name :
       {"encoder.wte.weight", "encoder.h.0.ln_1.weight", "encoder.h.1.attn.q_proj.bias", "encoder.h.0.mlp.c_fc.weight",
        "encoder.ln_f.bias", "decoder.wte.weight", "decoder.h.0.attn.v_proj.weight", "decoder.h.1.ln_cross_attn.weight",
        "decoder.h.1.crossattention.k_proj.weight", "decoder.h.0.crossattention.out_proj.bias", "decoder.ln_f.weight",
        "lm_head.weight", "lm_head.bias"})
    EXPECT_NE(model.parameters().find(name), nullptr) << name;
  EXPECT_EQ(model.parameters().find("encoder.h.0.crossattention.q_proj.weight"), nullptr);
}

TEST(EncoderDecoder, NeitherNeighboursNorPaddingChangeABit) {
  const std::vector<CodedPair> pairs = some_pairs();
  for (const auto& [name, c] : variants()) {
    const EncoderDecoder model(c, 2);
    const PairBatch batch = batch_of(pairs);
    const Tensor states = model.encode(batch.source).states, logits = model.logits(batch);
    for (size_t b = 0; b < pairs.size(); ++b) {
      const auto i = static_cast<int64_t>(b), S = batch.source.lengths[b], T = batch.inputs.lengths[b];
      const std::vector<float> want = rows(states, i, S);
      for (int64_t at_least : {int64_t{0}, kLongest}) {
        const Padded alone = pad(std::span(&pairs[b].source, 1), /*filler*/ 9, at_least);
        EXPECT_TRUE(same_bits(rows(model.encode(alone).states, 0, S), want)) << name << " source " << b;
      }
      const Tensor single = model.logits(batch_of(std::span(&pairs[b], 1)));
      EXPECT_EQ(single.shape(), (Shape{1, T, kV}));
      EXPECT_TRUE(same_bits(rows(single, 0, T), rows(logits, i, T))) << name << " pair " << b;
    }
  }
}

// Which target positions of pair 0 move, by a bit, when its source or its target is another at position j.
std::set<int64_t> moved_by(const EncoderDecoder& model, bool source, int64_t j) {
  const PairBatch batch = batch_of(some_pairs());
  PairBatch other = batch;
  int32_t& id = (source ? other.source : other.inputs).ids[static_cast<size_t>(j)];
  id = id == 4 ? 5 : 4;
  const Tensor a = model.logits(batch), b = model.logits(other);
  std::set<int64_t> moved;
  for (int64_t t = 0; t < batch.inputs.lengths[0]; ++t)
    if (std::memcmp(a.row(t), b.row(t), kV * sizeof(float)) != 0) moved.insert(t);
  for (int64_t i = 1; i < batch.inputs.B(); ++i)
    EXPECT_TRUE(same_bits(rows(a, i, batch.inputs.lengths[static_cast<size_t>(i)]),
                          rows(b, i, batch.inputs.lengths[static_cast<size_t>(i)])));
  return moved;
}

TEST(EncoderDecoder, ATargetSeesItsPastAndAllOfItsSource) {
  const EncoderDecoder model(small(), 2);
  for (int64_t s = 0; s < 7; ++s) EXPECT_EQ(moved_by(model, true, s), (std::set<int64_t>{0, 1, 2, 3})) << s;
  for (int64_t t = 0; t < 4; ++t) {
    std::set<int64_t> later;
    for (int64_t i = t; i < 4; ++i) later.insert(i);
    EXPECT_EQ(moved_by(model, false, t), later) << t;
  }
}

// One token a pass over the cache gives the rows of one pass over everything. The memory is laid out once a layer: what
// is handed in afterwards is not read any more.
TEST(EncoderDecoder, DecodingStepByStepIsTeacherForcing) {
  for (const auto& [name, c] : variants()) {
    const EncoderDecoder model(c, 2);
    const PairBatch batch = batch_of(some_pairs());
    const int64_t B = batch.inputs.B(), T = batch.inputs.T();
    const Tensor whole = model.logits(batch);
    const Memory memory = model.encode(batch.source);
    Memory unread = memory;
    unread.states = Tensor::zeros(memory.states.shape());
    for (int64_t r = 0; r < unread.states.rows(); ++r)
      std::fill_n(unread.states.row(r), unread.states.channels(), std::numeric_limits<float>::quiet_NaN());
    KvCache cache = model.make_cache(B, T);
    ASSERT_EQ(cache.memory.size(), 2u);
    EXPECT_EQ(cache.memory[0], nullptr) << "nothing is laid out before the first pass";
    std::vector<const KeyValues*> laid_out;
    for (int64_t t = 0; t < T; ++t) {
      std::vector<int32_t> column;
      for (int64_t b = 0; b < B; ++b) column.push_back(batch.inputs.ids[static_cast<size_t>(b * T + t)]);
      Pass pass;
      pass.cache = &cache, pass.memory = t == 0 ? &memory : &unread;
      const Tensor step = model.head(model.decode(column, B, pass));
      ASSERT_EQ(cache.length, t + 1);
      for (int64_t b = 0; b < B; ++b) {
        const float* want = whole.row(b * T + t);
        EXPECT_TRUE(same_bits(rows(step, b, 1), {want, want + kV})) << name << " pair " << b << " position " << t;
      }
      std::vector<const KeyValues*> now;
      for (const auto& layer : cache.memory) now.push_back(layer.get());
      if (t == 0) laid_out = now;
      EXPECT_EQ(now, laid_out);
      if (HasFailure()) return;
    }
    for (const KeyValues* layer : laid_out) EXPECT_EQ(layer->length, batch.source.T()) << "extended by nothing";
  }
}

// As beams do: sequences are dropped and doubled, and each goes on from where the one it copies was.
TEST(EncoderDecoder, AReorderedCacheGoesOnFromThoseItCopied) {
  const EncoderDecoder model(small(), 2);
  const PairBatch batch = batch_of(some_pairs({{7, 3}, {3, 3}, {5, 3}}));
  const Tensor whole = model.logits(batch);
  const Memory memory = model.encode(batch.source);
  KvCache cache = model.make_cache(3, 4);
  Pass pass;
  pass.cache = &cache, pass.memory = &memory;
  std::vector<int64_t> pair_of{0, 1, 2};
  const std::vector<int64_t> reorderings[] = {{2, 0, 2, 1}, {3, 0, 0}, {1, 2}};
  for (int64_t t = 0; t < 4; ++t) {
    std::vector<int32_t> column;
    for (int64_t b : pair_of) column.push_back(batch.inputs.ids[static_cast<size_t>(b * 4 + t)]);
    const auto beams = static_cast<int64_t>(pair_of.size());
    const Tensor step = model.head(model.decode(column, beams, pass));
    for (int64_t i = 0; i < beams; ++i) {
      const float* want = whole.row(pair_of[static_cast<size_t>(i)] * 4 + t);
      EXPECT_TRUE(same_bits(rows(step, i, 1), {want, want + kV})) << "beam " << i << " position " << t;
    }
    if (t == 3) break;
    const std::vector<int64_t>& from = reorderings[t];
    cache.reorder(from);
    std::vector<int64_t> next;
    for (int64_t i : from) next.push_back(pair_of[static_cast<size_t>(i)]);
    pair_of = next;
  }
}

struct Gradient {
  std::vector<float> values;
  double loss = 0;
};
Gradient gradient_of(const EncoderDecoder& model, std::span<const CodedPair> pairs, Pass pass, TapeGroups groups) {
  Gradient g{std::vector<float>(static_cast<size_t>(model.parameters().size())), 0};
  Tape tape(g.values.data(), 0, groups);
  const LossSum loss = model.loss(batch_of(pairs), pass, LossOptions(1, 0.1f));
  tape.backward(loss.loss);
  g.loss = loss.sum;
  return g;
}

TEST(EncoderDecoder, ThreadsChangeNoBit) {
  ModelConfig c = small();
  c.n_embd = 64, c.block_size = 48, c.dropout = 0.1;
  const EncoderDecoder model(c, 2);
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (int64_t i = 0; i < 12; ++i) sizes.emplace_back(48 - 3 * i, 4 * i + 2);
  const std::vector<CodedPair> pairs = some_pairs(sizes);
  Pass pass;
  pass.training = true;
  const int before = threads();
  std::vector<Gradient> found;
  std::vector<std::vector<float>> logits;
  for (int n : {1, 2, 3}) {
    set_threads(n);
    found.push_back(gradient_of(model, pairs, pass, {1, static_cast<int64_t>(pairs.size())}));
    logits.push_back(model.logits(batch_of(pairs)).to_vector());
  }
  set_threads(before);
  for (size_t i : {1u, 2u}) {
    EXPECT_EQ(found[i].loss, found[0].loss);
    EXPECT_TRUE(same_bits(found[i].values, found[0].values));
    EXPECT_TRUE(same_bits(logits[i], logits[0]));
  }
}

// Padding adds nothing: a padded batch has the gradient of its pairs, one after another, dropout's draws included.
TEST(EncoderDecoder, AGradientIsTheSumOverPairs) {
  const std::vector<CodedPair> pairs = some_pairs();
  for (double dropout : {0.0, 0.3}) {
    for (auto [name, c] : variants()) {
      c.dropout = dropout;
      const EncoderDecoder model(c, 2);
      Pass pass;
      pass.training = true, pass.seed = 5, pass.step = 3, pass.sequence = 40;
      const Gradient together = gradient_of(model, pairs, pass, {1, static_cast<int64_t>(pairs.size())});
      std::vector<float> sum(together.values.size());
      double loss = 0;
      for (size_t b = 0; b < pairs.size(); ++b, ++pass.sequence) {
        const Gradient one = gradient_of(model, std::span(&pairs[b], 1), pass, {});
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.values[i];
        loss += one.loss;
      }
      EXPECT_EQ(together.loss, loss) << name << " dropout " << dropout;
      for (const Parameter& p : model.parameters().list()) {
        const auto from = static_cast<size_t>(p.offset), n = static_cast<size_t>(p.shape.volume());
        const std::vector<float> a(together.values.begin() + p.offset,
                                   together.values.begin() + p.offset + p.shape.volume());
        EXPECT_TRUE(same_bits(a, {sum.data() + from, sum.data() + from + n})) << name << " " << p.name;
        EXPECT_NE(a, std::vector<float>(n)) << name << " " << p.name << ": nothing reached it";
      }
    }
  }
}

ModelConfig with_tables(bool tie, bool share) {
  ModelConfig c = small();
  if (share) c.source_vocab_size = kV;
  c.tie_embeddings = tie, c.share_embeddings = share;
  return c;
}

TEST(EncoderDecoder, TablesMayBeTiedAndShared) {
  const int64_t C = 16, apart = EncoderDecoder(small(), 2).parameters().count();
  for (bool tie : {false, true}) {
    for (bool share : {false, true}) {
      const ModelConfig c = with_tables(tie, share);
      const EncoderDecoder model(c, 2);
      const Parameters& p = model.parameters();
      EXPECT_EQ(p.count(), apart - (tie ? kV * C + kV : 0) - (share ? kSourceV * C : 0));
      EXPECT_EQ(p.count(), count_parameters(c).total);
      EXPECT_EQ(p.find("decoder.wte.weight")->shape, (Shape{kV, C}));
      ASSERT_EQ(p.find("encoder.wte.weight") == nullptr, share);
      EXPECT_TRUE(share || p.find("encoder.wte.weight")->shape == (Shape{kSourceV, C}));
      ASSERT_EQ(p.find("lm_head.weight") == nullptr, tie);
      EXPECT_TRUE(tie || p.find("lm_head.weight")->shape == (Shape{kV, C}));
      EXPECT_EQ(p.find("lm_head.bias") == nullptr, tie) << "a tied head has no bias";
    }
  }
}

// A token of the target's table gets a gradient from each use of that table, and from no other.
TEST(EncoderDecoder, ATableHearsFromAllItsUses) {
  const int64_t C = 16;
  const int32_t in_source = 5, in_target = 6, nowhere = 7;
  const std::vector<CodedPair> pairs{{{in_source, 2}, {in_target}}};
  for (bool tie : {false, true}) {
    for (bool share : {false, true}) {
      const EncoderDecoder model(with_tables(tie, share), 2);
      const Gradient g = gradient_of(model, pairs, {}, {});
      const float* table = g.values.data() + model.parameters().find("decoder.wte.weight")->offset;
      auto heard = [&](int64_t id) {
        return std::any_of(table + id * C, table + (id + 1) * C, [](float v) { return v != 0; });
      };
      EXPECT_TRUE(heard(in_target));
      EXPECT_EQ(heard(nowhere), tie) << "a head weighs every token";
      EXPECT_EQ(heard(in_source), tie || share);
    }
  }
}

TEST(EncoderDecoder, CrossPatternsSpreadOverTheUnpaddedSource) {
  const EncoderDecoder model(small(), 2);
  const PairBatch batch = batch_of(some_pairs());
  const int64_t B = batch.inputs.B(), T = batch.inputs.T(), S = batch.source.T();
  for (const char* name : {"decoder.0.cross_attn.hook_pattern", "decoder.1.cross_attn.hook_pattern"}) {
    Tensor pattern;
    Probe probe;
    probe.look(name, [&](const Tensor& p) { pattern = p; });
    model.logits(batch);
    ASSERT_TRUE(pattern.defined()) << name;
    ASSERT_EQ(pattern.shape(), (Shape{B, 2, T, S}));
    for (int64_t r = 0; r < pattern.rows(); ++r) {
      const int64_t length = batch.source.lengths[static_cast<size_t>(r / (2 * T))];
      double sum = 0;
      for (int64_t s = 0; s < S; ++s) {
        if (s < length) {
          EXPECT_GT(pattern.row(r)[s], 0) << "row " << r;
          sum += static_cast<double>(pattern.row(r)[s]);
        } else {
          EXPECT_EQ(pattern.row(r)[s], 0) << "row " << r << " position " << s;
        }
      }
      EXPECT_NEAR(sum, 1, static_cast<double>(S) * 0x1p-24) << "row " << r;
    }
  }
}

// Both sides of one model look through the same kinds of taps, by names of their own.
TEST(EncoderDecoder, TapsAreNamedBySide) {
  const EncoderDecoder model(small(), 2);
  std::vector<std::string> want = residual_taps(small()), seen;
  ASSERT_EQ(want.size(), 2u * (1 + 2 * 3));
  Probe probe;
  for (const std::string& name : want) probe.look(name, [&seen, name](const Tensor&) { seen.push_back(name); });
  model.logits(batch_of(some_pairs()));
  EXPECT_EQ(seen, want);
}

TEST(EncoderDecoder, LearnedPositionsEnd) {
  ModelConfig c = small();
  c.pos = Position::learned;
  EncoderDecoder model(c, 2);
  const PairBatch long_source = batch_of(some_pairs({{13, 2}})), long_target = batch_of(some_pairs({{2, 12}}));
  EXPECT_NO_THROW(model.logits(batch_of(some_pairs({{12, 11}}))));
  expect_parts(message([&] { model.logits(long_source); }), {"position 12", "ends at 11"});
  expect_parts(message([&] { model.logits(long_target); }), {"position 12", "ends at 11"});
  expect_parts(message([&] { model.ensure_positions(13, 2); }), {"12 positions", "13"});
  expect_parts(message([&] { model.ensure_positions(2, 14); }), {"12 positions", "14"});
  EXPECT_NO_THROW(model.ensure_positions(12, 12));
}

TEST(EncoderDecoder, ComputedPositionsDoNot) {
  for (Position pos : {Position::sinusoidal, Position::rotary}) {
    ModelConfig c = small();
    c.pos = pos;
    EncoderDecoder model(c, 2);
    const PairBatch batch = batch_of(some_pairs()), longer = batch_of(some_pairs({{40, 30}}));
    const std::vector<float> before = model.logits(batch).to_vector();
    EXPECT_NE(message([&] { model.logits(longer); }), "accepted");
    model.ensure_positions(40, 31);
    for (float v : model.logits(longer).to_vector()) ASSERT_TRUE(std::isfinite(v));
    EXPECT_TRUE(same_bits(model.logits(batch).to_vector(), before));
  }
}

TEST(EncoderDecoder, MistakesAreNamed) {
  const EncoderDecoder model(small(), 2);
  const PairBatch batch = batch_of(some_pairs());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto [smoothing, shown] : {std::pair{-0.1f, "-0.1"}, {1.0f, "1"}, {1.5f, "1.5"}, {nan, "nan"}})
    expect_parts(message([&, s = smoothing] { model.loss(batch, {}, LossOptions(1, s)); }),
                 {"label smoothing", shown, "[0,1)"});
  EXPECT_NO_THROW(model.loss(batch, {}, LossOptions(1, 0.999f)));
  expect_parts(message([&] { model.decode(batch.inputs.ids, batch.inputs.B(), Pass{}); }),
               {"no source", "pass.memory"});
  PairBatch foreign = batch;
  foreign.source.ids[0] = kSourceV;
  expect_parts(message([&] { model.logits(foreign); }), {"token id 17", "vocabulary has 17"});
  foreign = batch;
  foreign.inputs.ids[0] = kV;  // the source knows it, the target does not
  expect_parts(message([&] { model.logits(foreign); }), {"token id 13", "vocabulary has 13"});
  const std::vector<CodedPair> no_source{{{}, {3}}};
  EXPECT_NE(message([&] { batch_of(no_source); }), "accepted");
  expect_parts(message([] { make_seq2seq(ModelConfig{}, 0); }), {"arch=decoder", "no source"});
}

TEST(EncoderDecoder, AnEditedPatternIsUsedOrRefused) {
  const EncoderDecoder model(small(), 2);
  const PairBatch batch = batch_of(some_pairs());
  const std::vector<float> before = model.logits(batch).to_vector();
  const Memory memory = model.encode(batch.source);
  KvCache cache = model.make_cache(batch.inputs.B(), batch.inputs.T());
  Pass pass;
  pass.memory = &memory, pass.cache = &cache;
  Probe probe;
  probe.edit("decoder.0.cross_attn.hook_pattern", [](const Tensor& p) { return Tensor::zeros(p.shape()); });
  EXPECT_NE(model.logits(batch).to_vector(), before);
  expect_parts(message([&] { model.decode(batch.inputs.ids, batch.inputs.B(), pass); }),
               {"decoder.0.cross_attn.hook_pattern", "cache", "without"});
}

TEST(EncoderDecoder, ATargetThatSeesAheadIsRefused) {
  ModelConfig c = small();
  c.mask = Mask::full;
  expect_parts(message([&] { EncoderDecoder(c, 2); }), {"encoder-decoder", "mask=causal"});
}

}  // namespace
}  // namespace bary
