// SPDX-License-Identifier: Apache-2.0
// What the ways to tell positions apart are, without training: what attention knows of order (P1), what a rotary score
// depends on (P3), what ALiBi subtracts (P4).
#pragma once
#include "bary/lab/experiment.h"

namespace bary::lab {

std::vector<Unit> position_checks();                      // "order", "distance", "slopes"
void say_position_checks(const Rows& rows, Findings& f);  // claims P1, "P1 mask", P3, P4

}  // namespace bary::lab
