// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/beam.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "bary/base/parallel.h"
#include "bary/base/random.h"

namespace bary {
namespace {

using Ids = std::vector<int32_t>;

ModelConfig small(int64_t V = 13) {
  ModelConfig c = preset("copy");
  c.vocab_size = V, c.source_vocab_size = 9, c.n_embd = 16, c.n_head = 2, c.n_layer = 2, c.block_size = 12;
  return c;
}

// A model that has opinions: weights several times the usual, so that its distributions are far from uniform.
std::unique_ptr<Seq2Seq> opinionated(const ModelConfig& c, uint64_t seed) {
  auto model = make_seq2seq(c, seed);
  for (const Parameter& p : model->parameters().list())
    for (float& v : model->parameters().values_of(p)) v *= 2;
  model->parameters().changed();
  return model;
}

std::vector<Ids> random_sources(int64_t n, uint64_t seed) {
  std::vector<Ids> out;
  RandomStream random(seed, Purpose::test);
  for (int64_t i = 0; i < n; ++i) {
    out.emplace_back(1 + random.below(9));
    for (int32_t& id : out.back()) id = static_cast<int32_t>(random.below(9));
  }
  return out;
}

double teacher_forced(const Seq2Seq& model, const Ids& source, const Hypothesis& h) {
  CodedPair pair{source, h.ids};
  PairBatch batch = batch_of(std::span(&pair, 1));
  if (!h.ended) batch.targets.back() = -1;
  return log_probabilities(model, batch)[0];
}

TEST(BeamSearch, ScoresAreWhatTeacherForcingSays) {
  for (int64_t beam : {1, 2, 5}) {
    for (uint64_t seed : {1, 2, 3}) {
      auto model = opinionated(small(), seed);
      const auto sources = random_sources(7, seed);
      BeamOptions o;
      o.beam = beam, o.n_best = beam, o.max_tokens = 6;
      const auto found = beam_search(*model, sources, o);
      for (size_t i = 0; i < sources.size(); ++i) {
        ASSERT_FALSE(found[i].empty());
        EXPECT_LE(found[i].size(), static_cast<size_t>(beam));
        for (const Hypothesis& h : found[i]) {
          // the same terms, added token by token in both
          EXPECT_EQ(h.log_probability, teacher_forced(*model, sources[i], h)) << "beam " << beam;
          EXPECT_EQ(h.score, h.log_probability);
          EXPECT_TRUE(h.ended || h.ids.size() == 6u);
        }
      }
    }
  }
}

// Every target of at most `most` tokens, by enumeration
void each_target(int64_t V, int64_t most, int32_t eos, const std::function<void(const Ids&)>& f, Ids prefix = {}) {
  f(prefix);
  if (static_cast<int64_t>(prefix.size()) == most) return;
  for (int32_t v = 0; v < V; ++v) {
    if (v == eos) continue;
    prefix.push_back(v);
    each_target(V, most, eos, f, prefix);
    prefix.pop_back();
  }
}

TEST(BeamSearch, ABeamAsWideAsTheTreeFindsTheBest) {
  constexpr int64_t V = 4, kMost = 4;
  for (double penalty : {0.0, 0.7, 1.0}) {
    for (uint64_t seed : {1, 2, 3, 4}) {
      auto model = opinionated(small(V), seed);
      const auto sources = random_sources(3, seed + 10);
      BeamOptions o;
      o.beam = 4 * 81, o.n_best = 3, o.max_tokens = kMost, o.length_penalty = penalty;
      const auto found = beam_search(*model, sources, o);
      for (size_t i = 0; i < sources.size(); ++i) {
        std::vector<std::pair<double, Ids>> all;
        each_target(V, kMost, o.tokens.eos, [&](const Ids& ids) {
          const double p = teacher_forced(*model, sources[i], {ids, 0, 0, true});
          all.emplace_back(penalty == 0 ? p : p / std::pow(static_cast<double>(ids.size() + 1), penalty), ids);
        });
        std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.first > b.first; });
        ASSERT_EQ(all.size(), 1u + 3 + 9 + 27 + 81);
        for (size_t k = 0; k < 3; ++k) {
          EXPECT_EQ(found[i][k].ids, all[k].second) << "penalty " << penalty << " seed " << seed << " place " << k;
          EXPECT_NEAR(found[i][k].score, all[k].first, 1e-12);
        }
      }
    }
  }
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  for (uint64_t seed : {1, 2, 3}) {
    auto model = opinionated(small(), seed);
    const auto sources = random_sources(9, seed);
    BeamOptions o;
    o.max_tokens = 10;
    const auto found = beam_search(*model, sources, o);
    o.length_penalty = 1;  // has nothing to choose from
    const auto again = beam_search(*model, sources, o);
    for (size_t i = 0; i < sources.size(); ++i) {
      Ids ids;  // without a cache, the whole target again for each token
      bool ended = false;
      while (!ended && ids.size() < 10) {
        CodedPair pair{sources[i], ids};
        const Tensor logits = model->logits(batch_of(std::span(&pair, 1)));
        const float* x = logits.row(logits.rows() - 1);
        const auto best = static_cast<int32_t>(std::max_element(x, x + logits.channels()) - x);
        ended = best == o.tokens.eos;
        if (!ended) ids.push_back(best);
      }
      EXPECT_EQ(found[i][0].ids, ids);
      EXPECT_EQ(again[i][0].ids, ids);
    }
  }
}

TEST(BeamSearch, NeighboursThreadsAndGroupsChangeNothing) {
  auto model = opinionated(small(), 5);
  const auto sources = random_sources(11, 5);
  BeamOptions o;
  o.beam = 3, o.n_best = 3, o.max_tokens = 8;
  const auto want = beam_search(*model, sources, o);
  auto expect_same = [&](const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_EQ(a[k].ids, b[k].ids);
      EXPECT_EQ(a[k].log_probability, b[k].log_probability);
    }
  };
  const int before = threads();
  for (int n : {1, 2, 3}) {
    set_threads(n);
    for (int64_t together : {1, 4, 100}) {
      o.together = together;
      const auto got = beam_search(*model, sources, o);
      for (size_t i = 0; i < sources.size(); ++i) expect_same(got[i], want[i]);
    }
  }
  set_threads(before);
  for (size_t i = 0; i < sources.size(); ++i)
    expect_same(beam_search(*model, std::span(sources).subspan(i, 1), o)[0], want[i]);
}

TEST(BeamSearch, RepeatsAndForbiddenTokensAreLeftOut) {
  auto model = opinionated(small(), 2);
  const auto sources = random_sources(6, 2);
  BeamOptions o;
  o.beam = 2, o.max_tokens = 9, o.no_repeat_ngram = 2, o.never = {0, 1, 5};
  for (const auto& found : beam_search(*model, sources, o)) {
    const Ids& ids = found[0].ids;
    for (int32_t id : ids) EXPECT_TRUE(id != 0 && id != 1 && id != 5);
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (size_t j = i + 1; j + 1 < ids.size(); ++j) EXPECT_FALSE(ids[i] == ids[j] && ids[i + 1] == ids[j + 1]);
  }
}

TEST(BeamSearch, TokensComeAsTheyAreFound) {
  auto model = opinionated(small(), 2);
  const auto sources = random_sources(1, 4);
  BeamOptions o;
  o.max_tokens = 7;
  Ids heard;
  o.on_token = [&](size_t, int32_t token) { heard.push_back(token); };
  EXPECT_EQ(beam_search(*model, sources, o)[0][0].ids, heard);
}

TEST(BeamSearch, CallsBackDoNotOverlap) {
  auto model = opinionated(small(), 2);
  std::atomic<int> inside = 0, overlapping = 0;
  const auto call = [&] {
    if (++inside > 1) ++overlapping;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --inside;
  };
  BeamOptions o;
  o.max_tokens = 4, o.together = 1;
  o.on_token = [&](size_t, int32_t) { call(); };
  o.cancelled = [&] { return call(), false; };
  set_threads(3);
  beam_search(*model, random_sources(9, 2), o);
  set_threads(0);
  EXPECT_EQ(overlapping, 0);
}

TEST(BeamSearch, RefusesWhatCannotBe) {
  auto model = make_seq2seq(small(), 1);
  auto message = [&](const std::vector<Ids>& sources, const BeamOptions& o) {
    try {
      beam_search(*model, sources, o);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  BeamOptions o;
  EXPECT_NE(message({{1, 2}, {}}, o).find("source 2 is empty"), std::string::npos);
  o.beam = 0;
  EXPECT_NE(message({{1}}, o).find("beam is 0"), std::string::npos);
  o.beam = 2, o.n_best = 3;
  EXPECT_NE(message({{1}}, o).find("n_best is 3 of a beam of 2"), std::string::npos);
  o.beam = 60000, o.n_best = 1, o.max_tokens = 1 << 20;
  EXPECT_NE(message({{1}}, o).find("GB"), std::string::npos) << "wider than memory allows";
  ModelConfig learned = small();
  learned.pos = Position::learned;
  model = make_seq2seq(learned, 1);
  const std::string said = message({Ids(13, 1)}, {});
  EXPECT_NE(said.find("12"), std::string::npos) << said;
  EXPECT_NE(said.find("13"), std::string::npos) << said;
}

TEST(Beam, AllSourcesMayComeTogether) {
  const auto model = opinionated(small(), 3);
  const auto sources = random_sources(5, 7);
  BeamOptions few, all;
  few.together = 2, all.together = INT64_MAX;
  const auto a = beam_search(*model, sources, few), b = beam_search(*model, sources, all);
  ASSERT_EQ(b.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(b[i].size(), 1u);
    EXPECT_EQ(a[i][0].ids, b[i][0].ids);
  }
}

TEST(Beam, SpeaksOfGreedyDecodingOnly) {
  const auto model = opinionated(small(), 3);
  BeamOptions o;
  int calls = 0;
  o.beam = 3;
  o.on_token = [&](size_t, int32_t) { ++calls; };
  beam_search(*model, random_sources(2, 7), o);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace bary
