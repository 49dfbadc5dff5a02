// SPDX-License-Identifier: Apache-2.0
// Rows whose measurements came to nothing, for tests of what is said of them.
#pragma once
#include <nlohmann/json.hpp>

namespace bary::lab {

// Numbers that are not whole become what is written for NaN.
inline void lose_figures(nlohmann::json& j) {
  if (j.is_number_float()) {
    j = nullptr;
  } else if (j.is_structured()) {
    for (auto& part : j) lose_figures(part);
  }
}

}  // namespace bary::lab
