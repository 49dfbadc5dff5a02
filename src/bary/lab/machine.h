// SPDX-License-Identifier: Apache-2.0
// The machine a row was measured on, kept beside it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace bary::lab {

nlohmann::json this_machine();  // cpu, cores, threads, isa
// Input Error where a file of `what` holds something else than a list of these
void check_machines(const nlohmann::json& machines, const std::string& what);
std::string machines_text(const nlohmann::json& machines);  // in one line, the first one first

}  // namespace bary::lab
