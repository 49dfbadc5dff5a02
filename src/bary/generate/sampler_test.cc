// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "bary/base/error.h"

namespace bary {
namespace {

std::vector<float> logs(const std::vector<double>& p) {
  std::vector<float> l;
  for (double x : p) l.push_back(static_cast<float>(std::log(x)));
  return l;
}

std::vector<double> shares(const std::vector<float>& logits, const SamplerOptions& o, int64_t allowed = -1,
                           const std::vector<int32_t>& history = {}) {
  const uint64_t draws = 20000;
  std::vector<double> n(logits.size(), 0);
  for (uint64_t i = 0; i < draws; ++i) {
    RandomStream random(5, Purpose::test, i);
    const int64_t all = allowed < 0 ? static_cast<int64_t>(logits.size()) : allowed;
    n[static_cast<size_t>(sample_token(logits, all, history, o, random))] += 1;
  }
  for (double& x : n) x /= static_cast<double>(draws);
  return n;
}

// each share of 20,000 draws is within 5 standard deviations
void expect_shares(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(std::fabs(got[i] - want[i]), 5 * std::sqrt(want[i] * (1 - want[i]) / 20000)) << "token " << i;
  }
}

int32_t one(const std::vector<float>& logits, const SamplerOptions& o, const std::vector<int32_t>& history = {}) {
  RandomStream random(1, Purpose::test);
  return sample_token(logits, static_cast<int64_t>(logits.size()), history, o, random);
}

SamplerOptions with(double temperature, int64_t top_k = 0, double top_p = 1, double min_p = 0) {
  SamplerOptions o;
  o.temperature = temperature, o.top_k = top_k, o.top_p = top_p, o.min_p = min_p;
  return o;
}

TEST(Sampler, OfOneTokenIsThatToken) {
  for (double t : {0.0, 1.0, 100.0}) EXPECT_EQ(one({-3.0f}, with(t)), 0);
}

TEST(Sampler, TemperatureZeroIsTheMostLikely) {
  EXPECT_EQ(one({0.1f, 3.0f, -2.0f}, with(0)), 1);
  EXPECT_EQ(one({1.0f, 3.0f, 3.0f, 3.0f}, with(0)), 1) << "ties go to the lowest id";
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(one({-inf, 5.0f, inf, -inf}, with(0)), 2);
  EXPECT_EQ(one({-inf, -inf, -1.0f}, with(0)), 2);
  EXPECT_EQ(one({-1e30f, -3e30f}, with(0)), 0);
}

TEST(Sampler, ATinyTemperatureIsNotInfinite) {
  for (double t : {1e-300, 1e-30, 1e-6}) EXPECT_EQ(one({0.0f, 1.0f, 0.5f}, with(t)), 1) << t;
}

TEST(Sampler, TemperatureOneFollowsTheModel) {
  expect_shares(shares(logs({0.1, 0.2, 0.3, 0.4}), with(1)), {0.1, 0.2, 0.3, 0.4});
}

TEST(Sampler, TemperatureDividesTheLogits) {  // p^(1/2), normalised
  double sum = 0;
  std::vector<double> want{0.1, 0.2, 0.3, 0.4};
  for (double& p : want) sum += p = std::sqrt(p);
  for (double& p : want) p /= sum;
  expect_shares(shares(logs({0.1, 0.2, 0.3, 0.4}), with(2)), want);
}

TEST(Sampler, TopKKeepsTheMostLikely) {
  const auto logits = logs({0.1, 0.2, 0.3, 0.4});
  expect_shares(shares(logits, with(1, 2)), {0, 0, 3.0 / 7, 4.0 / 7});
  expect_shares(shares(logits, with(1, 1)), {0, 0, 0, 1});
  expect_shares(shares(logits, with(1, 0)), {0.1, 0.2, 0.3, 0.4});     // off
  expect_shares(shares(logits, with(1, 1000)), {0.1, 0.2, 0.3, 0.4});  // more than there are
}

TEST(Sampler, TopKWithTiesKeepsTheLowestIds) { expect_shares(shares({1, 1, 1, 1}, with(1, 2)), {0.5, 0.5, 0, 0}); }

TEST(Sampler, TopPKeepsTheCrossingToken) {
  const auto logits = logs({0.1, 0.2, 0.3, 0.4});
  expect_shares(shares(logits, with(1, 0, 0.6)), {0, 0, 3.0 / 7, 4.0 / 7});
  expect_shares(shares(logits, with(1, 0, 0.75)), {0, 2.0 / 9, 3.0 / 9, 4.0 / 9});
  expect_shares(shares(logits, with(1, 0, 1)), {0.1, 0.2, 0.3, 0.4});
  expect_shares(shares(logits, with(1, 0, 0)), {0, 0, 0, 1});
  expect_shares(shares(logits, with(1, 0, 1e-12)), {0, 0, 0, 1});
}

TEST(Sampler, TopPCountsWhatTopKLeft) {  // of {0.3, 0.4} the larger is 4/7 > 0.5
  expect_shares(shares(logs({0.1, 0.2, 0.3, 0.4}), with(1, 2, 0.5)), {0, 0, 0, 1});
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  const auto logits = logs({0.1, 0.2, 0.3, 0.4});
  expect_shares(shares(logits, with(1, 0, 1, 0.6)), {0, 0, 3.0 / 7, 4.0 / 7});
  expect_shares(shares(logits, with(1, 0, 1, 1)), {0, 0, 0, 1});
  expect_shares(shares({2, 2, 1}, with(1, 0, 1, 1)), {0.5, 0.5, 0});
}

TEST(Sampler, RepetitionPenaltyMakesSeenTokensLessLikely) {
  SamplerOptions o = with(0);
  o.repetition_penalty = 2;
  EXPECT_EQ(one({4.0f, 3.0f, 1.0f}, o, {0}), 1) << "a positive logit is divided";
  EXPECT_EQ(one({-1.0f, -1.5f, -9.0f}, o, {0}), 1) << "a negative one is multiplied";
  EXPECT_EQ(one({4.0f, 3.0f}, o, {0, 0, 0, 1}), 0) << "once, however often it was seen";
  EXPECT_EQ(one({4.0f, 3.0f}, o, {7, -1}), 0) << "ids out of range are nobody's";
  o.repetition_penalty = 1;
  EXPECT_EQ(one({4.0f, 3.0f}, o, {0}), 0);
}

TEST(Sampler, PaddedIdsAreNeverDrawn) {
  const std::vector<float> logits{0, 0, 0, 50, 60};  // ids 3 and 4 belong to no token
  for (double t : {0.0, 1.0, 1000.0}) {
    RandomStream random(1, Purpose::test);
    EXPECT_LT(sample_token(logits, 3, {}, with(t), random), 3);
  }
  expect_shares(shares(logits, with(1), 3), {1.0 / 3, 1.0 / 3, 1.0 / 3, 0, 0});
  RandomStream random(1, Purpose::test);
  EXPECT_EQ(sample_token(logits, 0x7fffffffffffffff, {}, with(0), random), 4) << "allowed beyond the logits means all";
  EXPECT_THROW(sample_token(logits, 0, {}, with(0), random), Error);
}

TEST(Sampler, NotANumberIsSaid) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (double t : {0.0, 1.0}) {
    try {
      one({0.0f, nan, 1.0f}, with(t));
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::numeric);
      EXPECT_NE(std::string(e.what()).find("token 1"), std::string::npos) << e.what();
    }
  }
}

TEST(Sampler, InfiniteLogitsAreCertainties) {
  const float inf = std::numeric_limits<float>::infinity();
  expect_shares(shares({0, inf, inf}, with(1)), {0, 0.5, 0.5});
  expect_shares(shares({0, -inf, 0}, with(1)), {0.5, 0, 0.5});
}

TEST(Sampler, OneDrawAToken) {  // so that options change the choice and never the stream
  for (const SamplerOptions& o : {with(1), with(1, 2), with(3, 0, 0.5)}) {
    RandomStream a(9, Purpose::test), b(9, Purpose::test);
    sample_token(logs({0.1, 0.2, 0.3, 0.4}), 4, {}, o, a);
    b.uniform();
    EXPECT_EQ(a.next(), b.next());
  }
}

void expect_refused(SamplerOptions o, const std::string& name) {
  try {
    check_sampler(o);
    ADD_FAILURE() << name << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(e.what()).find(name), 0u) << e.what();
    EXPECT_NE(std::string(e.what()).find("expected"), std::string::npos) << e.what();
  }
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (double t : {-0.1, -inf, inf, nan}) expect_refused(with(t), "temperature");
  expect_refused(with(1, -1), "top_k");
  for (double p : {-0.01, 1.01, nan, inf}) {
    expect_refused(with(1, 0, p), "top_p");
    expect_refused(with(1, 0, 1, p), "min_p");
  }
  for (double r : {0.0, -1.0, nan, inf}) {
    SamplerOptions o;
    o.repetition_penalty = r;
    expect_refused(o, "repetition_penalty");
  }
  for (const SamplerOptions& o : {with(0), with(1, 0, 0), with(1, 0, 1, 1), with(1e6, 1 << 30)})
    EXPECT_NO_THROW(check_sampler(o));
}

}  // namespace
}  // namespace bary
