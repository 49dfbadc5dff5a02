// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels run on: the best this machine has, unless BARY_ISA (avx512, avx2, neon, scalar) or
// force_isa says otherwise. All of them give the same bits; only the time differs.
#pragma once
#include <string>
#include <vector>

namespace bary::kernel {

std::vector<std::string> available_isas();  // best first; "scalar" is always there
std::string active_isa();
void force_isa(
    const std::string& name);       // "" = the best again; Error if this machine has no such set. Before training.
void apply_isa_from_environment();  // reads BARY_ISA; called once by the first kernel user (tensor/, cli/)

}  // namespace bary::kernel
