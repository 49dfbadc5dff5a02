// SPDX-License-Identifier: Apache-2.0
#include "bary/text/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "bary/base/refusal_test.h"

namespace bary {
namespace {

std::vector<int32_t> counting(int64_t n) {
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(Windows, EveryValidStartIsDrawnAndNoOther) {
  const std::vector<int32_t> ids = counting(8);
  const Windows windows(ids, 4);
  EXPECT_EQ(windows.starts(), 4);
  std::map<int64_t, int> drawn;
  std::vector<int32_t> inputs(4), targets(4);
  for (uint64_t sequence = 0; sequence < 400; ++sequence) {
    windows.window(1, Purpose::test, 0, sequence, inputs, targets);
    ++drawn[inputs[0]];
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(inputs[size_t(i)], inputs[0] + i);
      EXPECT_EQ(targets[size_t(i)], inputs[0] + i + 1);
    }
  }
  EXPECT_EQ(drawn.size(), 4u);
  EXPECT_EQ(drawn.rbegin()->first, 3);
  // 100 expected each; six standard deviations are 52.
  for (const auto& [start, times] : drawn) EXPECT_NEAR(times, 100, 52) << start;
}

TEST(Windows, OneTokenMoreThanTheBlockIsExactlyOneWindow) {
  const std::vector<int32_t> ids = counting(5);
  const Windows windows(ids, 4);
  EXPECT_EQ(windows.starts(), 1);
  std::vector<int32_t> inputs(4), targets(4);
  for (uint64_t sequence = 0; sequence < 20; ++sequence) {
    windows.window(9, Purpose::batch, sequence, sequence, inputs, targets);
    EXPECT_EQ(inputs, (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(targets, (std::vector<int32_t>{1, 2, 3, 4}));
  }
}

TEST(Windows, TooFewTokensAreRefusedWithBothNumbers) {
  for (int64_t n : {0, 1, 3, 4}) {
    const std::vector<int32_t> ids = counting(n);
    const std::string message = message_of([&] { Windows windows(ids, 4, "the training part"); });
    expect_contains(message, fmt::format("the training part has {} tokens", n));
    expect_contains(message, "block_size 4 needs at least 5");
  }
  const std::vector<int32_t> ids = counting(4);
  message_of([&] { Windows windows(ids, 0); });
  message_of([&] { Windows windows(ids, -1); });
  message_of([&] { Windows windows(ids, INT64_MAX); });
}

TEST(Windows, WrongRoomOrStartIsRefused) {
  const std::vector<int32_t> ids = counting(8);
  const Windows windows(ids, 4);
  std::vector<int32_t> four(4), five(5);
  message_of([&] { windows.window_at(0, four, five); });
  message_of([&] { windows.window_at(0, five, four); });
  message_of([&] { windows.window_at(4, four, four); });
  message_of([&] { windows.window_at(-1, four, four); });
  windows.window_at(3, four, four);
  EXPECT_EQ(four.back(), 7);
}

// The windows of one optimiser step, however they are dealt out.
TEST(Windows, BatchSplitRanksAndResumeDoNotChangeAStep) {
  const std::vector<int32_t> ids = counting(1000);
  const Windows windows(ids, 16);
  const auto draw = [&](uint64_t step, uint64_t first, uint64_t count, uint64_t stride) {
    std::multiset<int64_t> starts;
    for (uint64_t i = 0; i < count; ++i) starts.insert(windows.start_of(42, Purpose::batch, step, first + i * stride));
    return starts;
  };
  for (uint64_t step : {0, 1, 17}) {
    const std::multiset<int64_t> whole = draw(step, 0, 64, 1);
    for (uint64_t ranks : {1, 2, 3, 4}) {
      std::multiset<int64_t> together;
      for (uint64_t rank = 0; rank < ranks; ++rank)
        together.merge(draw(step, rank, (64 - rank + ranks - 1) / ranks, ranks));
      EXPECT_EQ(together, whole);
    }
    std::multiset<int64_t> accumulated = draw(step, 32, 32, 1);  // the second half first
    accumulated.merge(draw(step, 0, 32, 1));
    EXPECT_EQ(accumulated, whole);
  }
  // Steps, seeds and sequences are different draws: ranks with one seed do not read the same data.
  EXPECT_NE(draw(0, 0, 64, 1), draw(1, 0, 64, 1));
  const std::multiset<int64_t> one_step = draw(0, 0, 64, 1);
  EXPECT_GT(std::set<int64_t>(one_step.begin(), one_step.end()).size(), 50u);
  EXPECT_NE(windows.start_of(1, Purpose::batch, 0, 0), windows.start_of(2, Purpose::batch, 0, 0));
}

TEST(Windows, EvaluationDrawsDoNotTouchTraining) {
  const std::vector<int32_t> ids = counting(500);
  const Windows train(ids, 8);
  std::vector<int32_t> inputs(8), targets(8);
  const auto run = [&](bool evaluate) {
    std::vector<int32_t> seen;
    for (uint64_t step = 0; step < 20; ++step) {
      for (uint64_t i = 0; evaluate && i < 5; ++i) train.window(7, Purpose::eval_batch, 0, i, inputs, targets);
      train.window(7, Purpose::batch, step, 0, inputs, targets);
      seen.insert(seen.end(), inputs.begin(), inputs.end());
      seen.insert(seen.end(), targets.begin(), targets.end());
    }
    return seen;
  };
  EXPECT_EQ(run(true), run(false));
  // Same seed, other purpose: not the same windows.
  int same = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    same += train.start_of(7, Purpose::batch, 0, i) == train.start_of(7, Purpose::eval_batch, 0, i);
  }
  EXPECT_LT(same, 10);
}

TEST(Windows, SixteenBitTokensReadLikeInts) {
  std::vector<uint16_t> ids{65535, 32768, 0, 1, 2, 3};
  const Windows windows(ids, 2);
  std::vector<int32_t> inputs(2), targets(2);
  windows.window_at(0, inputs, targets);
  EXPECT_EQ(inputs, (std::vector<int32_t>{65535, 32768}));
  EXPECT_EQ(targets, (std::vector<int32_t>{32768, 0}));
}

TEST(SequentialWindows, EachTargetOnceInOrder) {
  for (int64_t n = 2; n <= 14; ++n) {
    const std::vector<int32_t> ids = counting(n);
    for (int64_t T = 1; T <= 15; ++T) {
      const SequentialWindows windows(ids, T);
      std::vector<int32_t> seen;
      for (int64_t i = 0; i < windows.count(); ++i) {
        std::vector<int32_t> inputs(size_t(windows.length(i))), targets(inputs.size());
        windows.window(i, inputs, targets);
        for (size_t k = 0; k < inputs.size(); ++k) EXPECT_EQ(targets[k], inputs[k] + 1);
        seen.insert(seen.end(), targets.begin(), targets.end());
      }
      std::vector<int32_t> expected = counting(n);
      expected.erase(expected.begin());
      EXPECT_EQ(seen, expected) << n << " " << T;
      EXPECT_EQ(windows.targets(), n - 1);
    }
  }
}

TEST(SequentialWindows, TheChaptersWindowsAreWholeOnes) {
  const std::vector<int32_t> ids = counting(45976);
  const SequentialWindows all(ids, 128);
  EXPECT_EQ(all.count(), 360);
  EXPECT_EQ(all.length(358), 128);
  EXPECT_EQ(all.length(359), 23);
  EXPECT_EQ(all.targets(), 45975);
  const SequentialWindows full(ids, 128, {.full_only = true});
  EXPECT_EQ(full.count(), 359);
  EXPECT_EQ(full.targets(), 359 * 128);
  message_of([&] { full.length(359); });
  message_of([&] { full.length(-1); });
}

TEST(SequentialWindows, ShortTexts) {
  const std::vector<int32_t> one = counting(1), none;
  message_of([&] { SequentialWindows windows(one, 4); });
  message_of([&] { SequentialWindows windows(none, 4); });
  const std::vector<int32_t> four = counting(4);
  EXPECT_EQ(SequentialWindows(four, 4).count(), 1);
  expect_contains(message_of([&] { SequentialWindows windows(four, 4, {.full_only = true}); }), "at least 5");
  const std::vector<int32_t> five = counting(5);
  EXPECT_EQ(SequentialWindows(five, 4, {.full_only = true}).count(), 1);
}

TEST(SplitTokens, InOrderByTokens) {
  const std::vector<int32_t> ids = counting(459760);
  const TokenSplit split = split_tokens(ids);
  EXPECT_EQ(split.train.size(), 413784);
  EXPECT_EQ(split.val.size(), 45976);
  EXPECT_EQ(split.train[413783], 413783);
  EXPECT_EQ(split.val[0], 413784);
  const std::vector<int32_t> ten = counting(10);
  for (int tenths = 0; tenths < 10; ++tenths) EXPECT_EQ(split_tokens(ten, tenths / 10.0).train.size(), 10 - tenths);
  EXPECT_EQ(split_tokens(ten, 0.15).train.size(), 8);
  EXPECT_EQ(split_tokens(TokenSpan()).train.size(), 0);
  message_of([&] { split_tokens(ten, 1.0); });
  message_of([&] { split_tokens(ten, -0.1); });
  message_of([&] { split_tokens(ten, std::nan("")); });
}

TEST(CheckWindowFits, NamesThePartAndBothNumbers) {
  const auto check = [](int64_t n, double val_fraction, int64_t T) {
    const std::vector<int32_t> ids = counting(n);
    check_window_fits(split_tokens(ids, val_fraction), T);
  };
  std::string message = message_of([&] { check(0, 0.1, 8); });
  expect_contains(message, "the text has 0 tokens");
  message = message_of([&] { check(90, 0.1, 128); });
  expect_contains(message, "the text has 90 tokens, block_size 128 needs at least 129");
  expect_contains(message, "choose a smaller --block_size");
  message = message_of([&] { check(514, 0.1, 52); });
  expect_contains(message, "the validation part has 52 of 514 tokens, block_size 52 needs at least 53");
  message = message_of([&] { check(100, 0.6, 50); });
  expect_contains(message, "the part to learn from has 40 of 100 tokens");
  check(514, 0.1, 51);
  check(129, 0.0, 128);
  message_of([&] { check(129, 0.0, 129); });
}

TEST(BytesOf, SumsTheTargetsBytes) {
  const std::vector<int32_t> bytes{1, 2, 5}, ids{0, 2, 2, 1};
  EXPECT_EQ(bytes_of(ids, bytes), 13);
  EXPECT_EQ(bytes_of(TokenSpan(), bytes), 0);
  const std::vector<int32_t> outside{0, 3}, negative{-1};
  expect_contains(message_of([&] { bytes_of(outside, bytes); }), "id 3 at position 1");
  message_of([&] { bytes_of(negative, bytes); });
}

TEST(TokenSpan, SlicesStayInside) {
  const std::vector<int32_t> ids = counting(5);
  const TokenSpan all(ids);
  EXPECT_EQ(all.slice(5, 0).size(), 0);
  EXPECT_EQ(all.slice(4, 1)[0], 4);
  message_of([&] { all.slice(4, 2); });
  message_of([&] { all.slice(-1, 1); });
  message_of([&] { all.slice(1, INT64_MAX); });
  message_of([&] { all.slice(0, -1); });
}

}  // namespace
}  // namespace bary
