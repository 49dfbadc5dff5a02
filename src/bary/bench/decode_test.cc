// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/decode.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"

namespace bary {
namespace {

TEST(DecodeBench, ReadsEveryWeightButTheTablesForAToken) {
  LanguageModel model(preset("block"), 1);
  const DecodeFigures f = measure_decode(model, 3, 2);
  ASSERT_EQ(f.seconds_a_token.size(), 2u);
  for (double s : f.seconds_a_token) EXPECT_GT(s, 0);
  EXPECT_EQ(f.weight_bytes, 4 * (477696 - 147456));
}

TEST(DecodeBench, StaysInsideTheLearnedPositions) {
  LanguageModel model(preset("block"), 1);
  EXPECT_NO_THROW(measure_decode(model, 127, 1));
  EXPECT_THROW(measure_decode(model, 128, 1), Error);
}

}  // namespace
}  // namespace bary
