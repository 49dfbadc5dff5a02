// SPDX-License-Identifier: Apache-2.0
#include "bary/model/recurrent_seq2seq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/model/count.h"
#include "bary/model/language_model.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

const std::vector<Arch> kArchs{Arch::rnn, Arch::lstm, Arch::gru};
const std::vector<Attend> kAttends{Attend::none, Attend::dot, Attend::additive};

ModelConfig small(Arch arch, Attend attend, int64_t layers = 2) {
  ModelConfig c;
  c.arch = arch, c.attend = attend, c.vocab_size = 13, c.source_vocab_size = 11, c.n_embd = 20, c.n_layer = layers;
  return c;
}

std::vector<int32_t> ids(int64_t n, int64_t V, uint64_t seed) {
  RandomStream random(seed, Purpose::test);
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (int32_t& id : out) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  return out;
}

std::vector<CodedPair> pairs() {
  return {{ids(7, 11, 1), ids(4, 13, 2)}, {ids(1, 11, 3), ids(6, 13, 4)}, {ids(5, 11, 5), {}}};
}

template <class F>
void each_model(const F& f) {
  for (Arch arch : kArchs)
    for (Attend attend : kAttends) f(*make_seq2seq(small(arch, attend), 3));
}

TEST(RecurrentSeq2Seq, CountsAreWhatItHas) {
  each_model([](Seq2Seq& m) { EXPECT_EQ(count_parameters(m.config()).total, m.parameters().count()); });
  for (Arch arch : kArchs) {
    ModelConfig c = small(arch, Attend::none);
    c.source_vocab_size = c.vocab_size, c.share_embeddings = c.tie_embeddings = true;
    EXPECT_EQ(count_parameters(c).total, make_seq2seq(c, 1)->parameters().count());
    c.source_vocab_size = 0, c.share_embeddings = false;
    EXPECT_EQ(count_parameters(c).total, LanguageModel(c, 1).parameters().count());
  }
}

// The loss of padded pairs and its gradient are those of the pairs alone.
TEST(RecurrentSeq2Seq, PaddingAndNeighboursChangeNoBit) {
  each_model([](Seq2Seq& m) {
    const auto all = pairs();
    const auto size = static_cast<size_t>(m.parameters().size());
    std::vector<float> together(size, 0.0f), alone(size, 0.0f);
    std::vector<double> losses;
    {
      Tape tape(together.data(), 0, {1, 3});
      LossSum loss = m.loss(batch_of(all));
      losses = loss.sequences;
      tape.backward(loss.loss);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<float> own(size, 0.0f);
      Tape tape(own.data());
      LossSum loss = m.loss(batch_of(std::span(all).subspan(i, 1)));
      EXPECT_EQ(loss.sum, losses[i]);
      tape.backward(loss.loss);
      for (size_t k = 0; k < size; ++k) alone[k] += own[k];
    }
    EXPECT_EQ(0, std::memcmp(together.data(), alone.data(), size * 4)) << arch_name(m.config());
  });
}

TEST(RecurrentSeq2Seq, TokenByTokenIsTheWholeTarget) {
  each_model([](Seq2Seq& m) {
    const PairBatch batch = batch_of(pairs());
    const Memory memory = m.encode(batch.source);
    Pass pass;
    pass.memory = &memory;
    const Tensor whole = m.decode(batch.inputs.ids, 3, pass);
    KvCache cache = m.make_cache(3, batch.inputs.T());
    pass.cache = &cache;
    for (int64_t t = 0; t < batch.inputs.T(); ++t) {
      std::vector<int32_t> column;
      for (int64_t b = 0; b < 3; ++b) column.push_back(batch.inputs.ids[static_cast<size_t>(b * batch.inputs.T() + t)]);
      const Tensor y = m.decode(column, 3, pass);
      for (int64_t b = 0; b < 3; ++b)
        EXPECT_EQ(0, std::memcmp(y.row(b), whole.row(b * batch.inputs.T() + t), 20 * 4)) << t << " " << b;
    }
    // and after a change of places
    cache = m.make_cache(3, 4);
    m.decode(std::vector<int32_t>{1, 1, 1}, 3, pass);
    cache.reorder({2, 0, 0, 1});
    const Tensor y = m.decode(std::vector<int32_t>{5, 5, 5, 5}, 4, pass);
    EXPECT_EQ(0, std::memcmp(y.row(1), y.row(2), 20 * 4));
    EXPECT_NE(0, std::memcmp(y.row(0), y.row(1), 20 * 4));
  });
}

TEST(RecurrentSeq2Seq, ThreadsChangeNoBit) {
  const int before = threads();
  each_model([](Seq2Seq& m) {
    std::vector<std::vector<float>> got;
    for (int n : {1, 2, 3}) {
      set_threads(n);
      std::vector<float> gradient(static_cast<size_t>(m.parameters().size()), 0.0f);
      Tape tape(gradient.data(), 0, {1, 3});
      tape.backward(m.loss(batch_of(pairs())).loss);
      got.push_back(gradient);
    }
    EXPECT_EQ(got[0], got[1]);
    EXPECT_EQ(got[0], got[2]);
  });
  set_threads(before);
}

TEST(RecurrentSeq2Seq, WhatIsReadAddsUpToOneOverTheSource) {
  for (Attend attend : {Attend::dot, Attend::additive}) {
    auto m = make_seq2seq(small(Arch::gru, attend), 3);
    Probe probe;
    int64_t rows = 0;
    probe.look("decoder.attend.hook_pattern", [&](const Tensor& p) {
      ASSERT_EQ(p.shape(), (Shape{3, 1, 7, 7}));
      const std::vector<int64_t> lengths{7, 1, 5};
      for (int64_t r = 0; r < p.rows(); ++r, ++rows) {
        double sum = 0;
        for (int64_t s = 0; s < 7; ++s) {
          const bool there = s < lengths[static_cast<size_t>(r / 7)];
          EXPECT_TRUE(there || p.row(r)[s] == 0);
          sum += p.row(r)[s];
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    });
    m->logits(batch_of(pairs()));
    EXPECT_EQ(rows, 21);
  }
}

TEST(RecurrentSeq2Seq, AnEditOfWhatIsReadGoesOn) {
  auto m = make_seq2seq(small(Arch::gru, Attend::dot), 3);
  const auto before = m->logits(batch_of(pairs())).to_vector();
  Probe probe;
  Tensor seen;
  probe.edit("decoder.attend.hook_pattern", [](const Tensor& p) { return p * 0.0f; });
  probe.look("decoder.attend.hook_pattern", [&](const Tensor& p) { seen = p; });
  EXPECT_NE(m->logits(batch_of(pairs())).to_vector(), before);
  for (float w : seen.to_vector()) EXPECT_EQ(w, 0);
}

// Without attention the last state is all that the target has of the source.
TEST(RecurrentSeq2Seq, TheBridgeIsTheLastState) {
  for (Attend attend : kAttends) {
    auto m = make_seq2seq(small(Arch::lstm, attend), 3);
    const PairBatch batch = batch_of(pairs());
    Memory memory = m->encode(batch.source);
    for (int64_t r = 0; r < memory.states.rows(); ++r)
      std::fill_n(memory.states.row(r), memory.states.channels(), 0.0f);
    Pass pass;
    pass.memory = &memory;
    const bool same = m->head(m->decode(batch.inputs.ids, 3, pass)).to_vector() == m->logits(batch).to_vector();
    EXPECT_EQ(same, attend == Attend::none);
  }
}

TEST(RecurrentLanguageModel, PiecesOfATextGiveTheSameBits) {
  for (Arch arch : kArchs) {
    ModelConfig c;
    c.arch = arch, c.vocab_size = 30, c.n_embd = 24, c.n_layer = 2;
    const LanguageModel m(c, 3);
    const auto text = ids(20, 30, 9);
    const Tensor whole = m.hidden(text, 1);
    for (size_t piece : {1u, 7u}) {
      KvCache cache = m.make_cache(1, 20);
      Pass pass;
      pass.cache = &cache;
      for (size_t at = 0; at < text.size(); at += piece) {
        const size_t n = std::min(piece, text.size() - at);
        const Tensor y = m.hidden(std::span(text).subspan(at, n), 1, pass);
        for (size_t t = 0; t < n; ++t)
          EXPECT_EQ(0, std::memcmp(y.row(static_cast<int64_t>(t)), whole.row(static_cast<int64_t>(at + t)), 24 * 4));
      }
    }
  }
}

TEST(RecurrentModels, RefuseWhatTheyCannotBe) {
  ModelConfig c = small(Arch::lstm, Attend::none);
  c.n_encoder_layer = 1;
  EXPECT_THROW(make_seq2seq(c, 1), Error) << "a bridge of one state to two";
  c = small(Arch::lstm, Attend::dot);
  c.source_vocab_size = 0;
  EXPECT_THROW(LanguageModel(c, 1), Error) << "nothing to attend to";
  c.attend = Attend::none, c.n_layer = 0;
  EXPECT_THROW(LanguageModel(c, 1), Error);
}

TEST(RecurrentModels, ACacheForMoreSourcesIsRefused) {
  const auto model = make_seq2seq(small(Arch::lstm, Attend::dot), 1);
  const CodedPair pair{ids(3, 11, 1), ids(2, 13, 2)};
  const PairBatch batch = batch_of(std::span(&pair, 1));
  const Memory memory = model->encode(batch.source, {});
  KvCache cache = model->make_cache(4, 8);
  Pass pass;
  pass.memory = &memory, pass.cache = &cache;
  const std::vector<int32_t> four(4, 1);
  EXPECT_THROW(model->decode(four, 4, pass), Error);
  EXPECT_THROW(cache.reorder({0, 4}), Error);
}

}  // namespace
}  // namespace bary
