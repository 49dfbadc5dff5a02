// SPDX-License-Identifier: Apache-2.0
// What the executable offers: the commands of cli/ and those that need a floor beside it.
#pragma once
#include <vector>

#include "bary/cli/command.h"

namespace bary {

const std::vector<Command>& all_commands();

// bary bench: this machine's limits, and what bary reaches of them.
Command bench_machine_command();
Command bench_kernels_command();
Command bench_attention_command();
Command bench_decode_command();
Command bench_beam_command();
Command bench_step_command();
// bary bench tokenizer: learning merges, coding and decoding on one thread.
Command bench_tokenizer_command();

}  // namespace bary
