// SPDX-License-Identifier: Apache-2.0
// The largest single request to operator new while a watch stands, by any thread. The program's operator new is
// replaced for it; a request above kRefused fails at once, so that no case can take the machine's memory.
#pragma once
#include <cstddef>

namespace bary::fuzz {

constexpr size_t kRefused = size_t{1} << 30;  // bytes

class AllocationWatch {
 public:
  AllocationWatch();
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  size_t largest() const;
};

}  // namespace bary::fuzz
