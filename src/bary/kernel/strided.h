// SPDX-License-Identifier: Apache-2.0
// Rows of floats that stand ld apart: of a matrix, or of one time step of a batch.
#pragma once
#include <cstdint>

namespace bary::kernel {

template <class T>
struct Strided {
  T* data = nullptr;  // null: absent
  int64_t ld = 0;
  T* row(int64_t r) const { return data + r * ld; }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace bary::kernel
