// SPDX-License-Identifier: Apache-2.0
#include "bary/text/pair_baselines.h"

#include <gtest/gtest.h>

namespace bary {
namespace {

using Pairs = std::vector<TextPair>;
using Lines = std::vector<std::string>;

TEST(PairBaselines, CopiesAndTargets) {
  const Pairs pairs{{"a b", "A, b."}, {"c", ""}};
  EXPECT_EQ(copied_sources(pairs), (Lines{"a b", "c"}));
  EXPECT_EQ(targets_of(pairs), (Lines{"A, b.", ""}));
  EXPECT_TRUE(copied_sources({}).empty());
}

TEST(WordRestoration, KnowsNothingAtFirst) {
  const WordRestoration none;
  EXPECT_EQ(none.words(), 0);
  EXPECT_EQ(none.restore(""), "");
  EXPECT_EQ(none.restore("  stays  as it\tis "), "stays as it is");
}

TEST(WordRestoration, TheMostFrequentSpellingWins) {
  const WordRestoration words(Pairs{{"we speak", "We speak,"}, {"we speak", "we speak."}, {"we speak", "We speak."}});
  EXPECT_EQ(words.words(), 2);
  EXPECT_EQ(words.restore("speak we unseen"), "speak. We unseen");
  EXPECT_EQ(words.restore(Pairs{{"we", ""}, {"x", "y"}}), (Lines{"We", "x"}));
}

TEST(WordRestoration, TiesGoToWhatWasSeenFirst) {
  WordRestoration words;
  for (const char* target : {"b", "c", "c", "b"}) words.learn({"a", target});
  EXPECT_EQ(words.restore("a"), "b");  // two each, although c had two first
  words.learn({"a", "c"});
  EXPECT_EQ(words.restore("a"), "c");
}

TEST(WordRestoration, PairsThatDoNotCorrespondArePassedOver) {
  const WordRestoration words(Pairs{{"sir no", "Sir -- no"}, {"sir", "sir!"}, {"a", ""}});
  EXPECT_EQ(words.words(), 1);
  EXPECT_EQ(words.restore("sir no"), "sir! no");
}

}  // namespace
}  // namespace bary
