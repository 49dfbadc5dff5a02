// SPDX-License-Identifier: Apache-2.0
// What of `bary train` goes together: options that would do nothing are refused, not passed over.
#pragma once
#include "bary/cli/train_request.h"

namespace bary {

// `asked`: the options as they were parsed, which tell what a person set.
void check_together(const TrainRequest& r, const Options& asked);

bool draws_letters(const std::string& task);  // copy, reverse, sort: those with symbols and lengths to choose

// out_dir holds a finished or interrupted run, and a new one would take its place.
void check_not_overwritten(const TrainRequest& r);

}  // namespace bary
