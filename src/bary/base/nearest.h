// SPDX-License-Identifier: Apache-2.0
// The known name a person most likely meant, for "unknown; did you mean ...?".
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bary {

// Optimal string alignment: the fewest insertions, deletions, replacements and swaps of neighbours from a to b (bytes).
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, or nothing where no candidate is near (about one slip in four letters). Names are
// made of parts joined by '_': "warmpu" finds warmup_iters, "decay" weight_decay, "lr" learning_rate. Ties: the earlier
// one.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace bary
