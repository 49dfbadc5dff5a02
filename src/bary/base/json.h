// SPDX-License-Identifier: Apache-2.0
// JSON from hostile files: nlohmann-json with a depth limit, duplicate keys refused, and errors that name the file.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace bary {

using Json = nlohmann::json;

// `what` names the text in errors ("config.json"). Refused: syntax errors, a key given twice in one object (readers
// disagree on which counts), nesting deeper than `deepest`, anything after the value.
Json parse_json(std::string_view text, const std::string& what, int deepest = 64);

// One value per line with two spaces of indent (indent < 0: one line). Invalid UTF-8 in a string becomes U+FFFD.
std::string dump_json(const Json& value, int indent = 2);

// The member `key` of an object, or an Error naming `what`, the key and, where it has the wrong type, what came.
const Json& json_member(const Json& object, const std::string& key, const std::string& what);
int64_t json_integer(const Json& object, const std::string& key, const std::string& what);  // exact, within int64
double json_number(const Json& object, const std::string& key, const std::string& what);
bool json_bool(const Json& object, const std::string& key, const std::string& what);
std::string json_string(const Json& object, const std::string& key, const std::string& what);

}  // namespace bary
