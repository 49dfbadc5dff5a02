// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/shape.h"

#include <fmt/ranges.h>

#include <span>

namespace bary {

std::string Shape::str() const {
  return fmt::format("({})", fmt::join(std::span(sizes_.data(), static_cast<size_t>(rank_)), ","));
}

}  // namespace bary
