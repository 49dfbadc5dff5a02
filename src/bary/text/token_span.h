// SPDX-License-Identifier: Apache-2.0
// A run of token ids that somebody else keeps: int32 in memory, or uint16/uint32 straight from a mapped token file.
// Positions and lengths are 64-bit. The owner must outlive the span.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "bary/base/error.h"

namespace bary {

// Token files are little-endian and are used where they lie in memory.
static_assert(std::endian::native == std::endian::little, "bary maps little-endian token files");

class TokenSpan {
 public:
  TokenSpan() = default;
  TokenSpan(std::span<const int32_t> ids) : first_(ids.data()), size_(std::ssize(ids)), kind_(Kind::int32) {}
  TokenSpan(std::span<const uint16_t> ids) : first_(ids.data()), size_(std::ssize(ids)), kind_(Kind::uint16) {}
  TokenSpan(std::span<const uint32_t> ids) : first_(ids.data()), size_(std::ssize(ids)), kind_(Kind::uint32) {}
  TokenSpan(const std::vector<int32_t>& ids) : TokenSpan(std::span<const int32_t>(ids)) {}
  TokenSpan(const std::vector<uint16_t>& ids) : TokenSpan(std::span<const uint16_t>(ids)) {}
  // A temporary would be gone at the end of the line.
  TokenSpan(std::vector<int32_t>&&) = delete;
  TokenSpan(std::vector<uint16_t>&&) = delete;

  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int32_t operator[](int64_t i) const {
    switch (kind_) {
      case Kind::int32:
        return static_cast<const int32_t*>(first_)[i];
      case Kind::uint16:
        return static_cast<const uint16_t*>(first_)[i];
      default:
        return static_cast<int32_t>(static_cast<const uint32_t*>(first_)[i]);
    }
  }

  // Tokens begin .. begin + length - 1; asks for nothing outside or fails.
  TokenSpan slice(int64_t begin, int64_t length) const {
    BARY_CHECK(begin >= 0 && length >= 0 && begin <= size_ && length <= size_ - begin,
               "tokens: a slice of {} from position {} does not lie in {} tokens; ask for less", length, begin, size_);
    TokenSpan part = *this;
    part.first_ = static_cast<const char*>(first_) + begin * (kind_ == Kind::uint16 ? 2 : 4);
    part.size_ = length;
    return part;
  }

  // out[i] = token begin + i
  void copy(int64_t begin, std::span<int32_t> out) const {
    const TokenSpan part = slice(begin, std::ssize(out));
    for (int64_t i = 0; i < part.size_; ++i) out[static_cast<size_t>(i)] = part[i];
  }

 private:
  enum class Kind : uint8_t { int32, uint16, uint32 };
  const void* first_ = nullptr;
  int64_t size_ = 0;
  Kind kind_ = Kind::int32;
};

}  // namespace bary
