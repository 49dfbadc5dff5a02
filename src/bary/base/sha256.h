// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): the name of a corpus, a vocabulary or a checkpoint by its content.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace bary {

class Sha256 {
 public:
  Sha256& update(std::string_view bytes);
  std::array<uint8_t, 32> digest() const;  // of all bytes so far; more may follow
  std::string hex() const;                 // the digest as 64 lower-case hexadecimal digits

 private:
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t length_ = 0;  // bytes
};

std::string sha256_hex(std::string_view bytes);

}  // namespace bary
