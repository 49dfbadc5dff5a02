// SPDX-License-Identifier: Apache-2.0
#include "bary/program/commands.h"

namespace bary {

const std::vector<Command>& all_commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> list = commands();
    list.push_back(bench_machine_command());
    list.push_back(bench_kernels_command());
    list.push_back(bench_step_command());
    list.push_back(bench_attention_command());
    list.push_back(bench_decode_command());
    list.push_back(bench_beam_command());
    list.push_back(bench_tokenizer_command());
    return list;
  }();
  return all;
}

}  // namespace bary
