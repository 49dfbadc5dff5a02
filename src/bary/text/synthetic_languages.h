// SPDX-License-Identifier: Apache-2.0
// Inside text/: the makers behind make_synthetic, one file a language, and what they share.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bary/base/random.h"
#include "bary/text/synthetic.h"

namespace bary {

std::unique_ptr<SyntheticLanguage> make_two_nouns(const SyntheticOptions& options);
std::unique_ptr<SyntheticLanguage> make_two_nouns_leaky(const SyntheticOptions& options);
std::unique_ptr<SyntheticLanguage> make_repeat(const SyntheticOptions& options);
enum class LetterTask : uint8_t { copy, reverse, sort };
std::unique_ptr<SyntheticLanguage> make_letter_task(LetterTask task, const SyntheticOptions& options);

// Steps of Purpose::synthetic: what is drawn from which stream.
inline constexpr uint64_t kDrawTraining = 0, kDrawHeldOut = 1, kPartition = 2;
RandomStream draw_stream(uint64_t seed, SyntheticSplit split, uint64_t index);

int or_default(int chosen, int normal);
void check_range(const char* language, const char* what, int64_t value, int64_t lowest, int64_t highest);
void check_held_out(const char* language, double share);

// The contents of a sequence decide its side, so the two sides never meet however many sequences are drawn.
bool is_held_out(const SyntheticOptions& options, const std::vector<int32_t>& tokens);
// For languages too large to list: draw() is asked again until it gives one of the right side.
std::vector<int32_t> draw_on_side(const SyntheticOptions& options, SyntheticSplit split, RandomStream stream,
                                  const std::function<std::vector<int32_t>(RandomStream&)>& draw);

}  // namespace bary
