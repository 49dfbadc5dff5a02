// SPDX-License-Identifier: Apache-2.0
// The machine a row was measured on, kept beside it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace bary::lab {

nlohmann::json this_machine();                            // cpu, cores, threads, isa
std::string machine_text(const nlohmann::json& machine);  // one line; "" of null

}  // namespace bary::lab
