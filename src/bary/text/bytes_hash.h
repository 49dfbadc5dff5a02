// SPDX-License-Identifier: Apache-2.0
// A hash of a short byte string for tables in memory; never stored, so it may change.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bary {

inline uint64_t hash_bytes(std::string_view bytes) {
  const char* p = bytes.data();
  size_t left = bytes.size();
  uint64_t h = left * 0x9E3779B97F4A7C15;
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93;
    h ^= h >> 32;
  };
  for (uint64_t word; left >= 8; p += 8, left -= 8) std::memcpy(&word, p, 8), mix(word);
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, p, left);
  mix(tail);
  return h;
}

}  // namespace bary
