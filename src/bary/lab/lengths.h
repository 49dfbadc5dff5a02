// SPDX-License-Identifier: Apache-2.0
// What the parts of a model cost for a text of T tokens: a block 128 wide with four heads, and what surrounds it.
#pragma once
#include <cstdint>
#include <vector>

namespace bary::lab {

enum Part { kScores, kProjections, kMlp, kNorms, kLookUp, kHead, kParts };
inline constexpr const char* kPartNames[] = {"scores and A V", "projections", "MLP", "LayerNorm", "look-up", "head"};

// Operations of each part, a multiply-add as two; of LayerNorm and look-up the numbers touched.
std::vector<double> counted_parts(int64_t T);
// Seconds of each part, the best of `repeats`.
std::vector<double> timed_parts(int64_t T, int64_t repeats);

}  // namespace bary::lab
