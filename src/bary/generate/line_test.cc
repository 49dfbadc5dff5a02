// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bary/base/error.h"

namespace bary {
namespace {

LanguageModel small(Position pos = Position::learned) {
  ModelConfig c;
  c.vocab_size = 11, c.n_layer = 2, c.n_head = 2, c.n_embd = 16, c.block_size = 24, c.pos = pos;
  LanguageModel model(c, 5);
  for (const Parameter& p : model.parameters().list())  // far from zero, so that every token matters
    for (int64_t i = 0; i < p.shape.volume(); ++i) model.parameters().values()[static_cast<size_t>(p.offset + i)] *= 3;
  model.parameters().changed();
  return model;
}

const std::vector<int32_t> kSource{7, 3, 9, 4, 2};  // <eos> is 2

// What teacher forcing says of every token of the answer and of what follows it
std::vector<std::vector<double>> forced(const LanguageModel& model, const std::vector<int32_t>& answer, bool prefix) {
  const CodedPair pair{kSource, answer};
  const LineBatch batch = lines_of(std::span(&pair, 1));
  Pass pass;
  if (prefix) pass.prefix = batch.sources;
  const Tensor logits = model.logits(batch.inputs.ids, 1, pass);
  std::vector<std::vector<double>> rows;
  for (int64_t r = batch.sources[0] - 1; r < batch.inputs.T(); ++r) rows.push_back(log_softmax(logits, r));
  return rows;
}

TEST(AnswerLine, WritesTheLikeliestTokenAndSaysWhatTeacherForcingSays) {
  for (Position pos : {Position::learned, Position::rotary, Position::alibi}) {
    for (bool prefix : {false, true}) {
      LanguageModel model = small(pos);
      LineOptions o;
      o.prefix = prefix, o.max_tokens = 9;
      const Hypothesis h = answer_line(model, kSource, o);
      const auto rows = forced(model, h.ids, prefix);
      double sum = 0;
      for (size_t i = 0; i < h.ids.size(); ++i) {
        EXPECT_EQ(h.ids[i], std::max_element(rows[i].begin(), rows[i].end()) - rows[i].begin());
        sum += rows[i][static_cast<size_t>(h.ids[i])];
      }
      if (h.ended) sum += rows.back()[2];
      EXPECT_EQ(h.log_probability, sum);
      EXPECT_EQ(h.ended,
                h.ids.size() < 9 || rows.back()[2] == *std::max_element(rows.back().begin(), rows.back().end()));
      const CodedPair pair{kSource, h.ids};
      double whole = 0;
      for (size_t i = 0; i < h.ids.size(); ++i) whole += rows[i][static_cast<size_t>(h.ids[i])];
      EXPECT_EQ(log_probability(model, pair, o), whole + rows.back()[2]);
    }
  }
}

TEST(AnswerLine, APrefixChangesWhatIsRead) {
  LanguageModel model = small();
  LineOptions o;
  o.max_tokens = 9;
  const double causal = answer_line(model, kSource, o).log_probability;
  o.prefix = true;
  EXPECT_NE(answer_line(model, kSource, o).log_probability, causal);
}

TEST(AnswerLine, WritesNothingForbiddenAndEndsWithTheTable) {
  LanguageModel model = small();
  LineOptions o;
  for (int32_t id = 0; id < 11; ++id)
    if (id != 5) o.never.push_back(id);
  std::vector<int32_t> seen;
  o.on_token = [&](int32_t id) { seen.push_back(id); };
  const Hypothesis h = answer_line(model, kSource, o);
  EXPECT_EQ(h.ids, std::vector<int32_t>(24 - 5, 5));  // 24 positions, 4 tokens and <bos>
  EXPECT_EQ(seen, h.ids);
  EXPECT_FALSE(h.ended);
}

TEST(AnswerLine, RefusesWhatItCannotAnswer) {
  LanguageModel model = small();
  EXPECT_THROW(answer_line(model, std::vector<int32_t>{2}, {}), Error);
  EXPECT_THROW(answer_line(model, std::vector<int32_t>(40, 3), {}), Error);
  ModelConfig c = small().config();
  c.arch = Arch::encoder;
  LanguageModel encoder(c, 1);
  EXPECT_THROW(answer_line(encoder, kSource, {}), Error);
}

TEST(AnswerLine, TokensBeyondTheVocabularyAreRefused) {
  LanguageModel model = small();
  for (int32_t token : {-1, 11, 5000}) {
    LineOptions o;
    o.never = {token};
    EXPECT_THROW(answer_line(model, kSource, o), Error) << token;
  }
  LineOptions o;
  o.max_tokens = INT64_MAX;
  EXPECT_THROW(answer_line(model, kSource, o), Error);
}

}  // namespace
}  // namespace bary
