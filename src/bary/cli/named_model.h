// SPDX-License-Identifier: Apache-2.0
// A command line "NAME --key value": the named settings, changed by the flags wherever these stand.
#pragma once
#include <fmt/format.h>

#include <span>
#include <string>

#include "bary/base/error.h"
#include "bary/base/options.h"
#include "bary/model/config.h"

namespace bary {

// Into request.model, of a Request with options(); `name` is what stands for the model where none is named. Returns the
// name. Parsed again after the settings of a name were taken, so that the flags change these; flags
// that mean nothing for such a model are refused.
template <class Request>
std::string parse_named_model(Request& request, const char* command, std::span<const std::string> args,
                              const std::string& name, ModelConfig (*named)(const std::string&) = preset) {
  Options first = request.options();
  const auto rest = first.parse_args(args);
  BARY_CHECK(rest.size() <= 1, "{}: {} models came ({}), one was expected; name one, such as {}", command, rest.size(),
             fmt::join(rest, ", "), name);
  if (!rest.empty()) {
    request.model = named(rest[0]);
    request.options().parse_args(args);
  }
  for (const Idle& idle : idle_options(request.model)) first.refuse(idle.names, idle.why);
  return rest.empty() ? name : rest[0];
}

}  // namespace bary
