// SPDX-License-Identifier: Apache-2.0
#include "bary/base/random.h"

#include <cmath>

#include "bary/base/portable_math.h"

namespace bary {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

// The name of the stream is hashed into the key and two counter words; the other two words count blocks.
RandomStream::RandomStream(uint64_t seed, Purpose purpose, uint64_t step, uint64_t index) {
  auto name = philox4x32({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), static_cast<uint32_t>(index),
                          static_cast<uint32_t>(index >> 32)},
                         {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  key_ = {name[0] ^ static_cast<uint32_t>(purpose) * 0x9E3779B9u, name[1]};
  counter_ = {0, static_cast<uint32_t>(purpose), name[2], name[3]};
}

uint32_t RandomStream::next() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    if (++counter_[0] == 0) counter_[1] += 0x10000;  // 2^32 blocks of four before the purpose word moves on
    used_ = 0;
  }
  return block_[used_++];
}

double RandomStream::uniform() {
  uint64_t hi = next() >> 5, lo = next() >> 6;  // 27 + 26 bits
  return (static_cast<double>(hi) * 67108864.0 + static_cast<double>(lo)) * 0x1p-53;
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double u = 1.0 - uniform(), angle = uniform();  // u in (0, 1], so the logarithm is finite
  double radius = std::sqrt(-2.0 * portable::log(u));
  spare_ = radius * portable::sin_turns(angle);
  has_spare_ = true;
  return radius * portable::cos_turns(angle);
}

uint64_t RandomStream::below(uint64_t n) {
  uint64_t limit = ~uint64_t{0} - (~uint64_t{0} % n + 1) % n;  // largest multiple of n, minus one
  for (;;) {
    uint64_t high = next();
    uint64_t x = high << 32 | next();
    if (x <= limit) return x % n;
  }
}

}  // namespace bary
