// SPDX-License-Identifier: Apache-2.0
// The bytes of every token, by id, and back.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bary/text/bytes_hash.h"

namespace bary {

class TokenStore {
 public:
  // Empty bytes: an id that no token has.
  void add(std::string_view bytes) {
    bytes_ += bytes;
    ends_.push_back(bytes_.size());
  }
  int32_t size() const { return static_cast<int32_t>(ends_.size()); }
  std::string_view operator[](int32_t id) const {
    const auto i = static_cast<size_t>(id);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// bytes -> id over the ids that were entered. The store is handed in at each call, so that both can be moved.
class TokenIndex {
 public:
  explicit TokenIndex(size_t expected) : slots_(std::bit_ceil(2 * expected + 2)) {}

  // False, and nothing changed, where another id has these bytes already. At most `expected` ids.
  bool insert(const TokenStore& store, int32_t id) {
    const uint64_t hash = hash_bytes(store[id]);
    Slot& slot = slots_[place(store, store[id], hash)];
    if (slot.id >= 0) return false;
    slot = {id, tag_of(hash)};
    return true;
  }
  int32_t find(const TokenStore& store, std::string_view bytes) const {  // or -1
    return slots_[place(store, bytes, hash_bytes(bytes))].id;
  }

 private:
  struct Slot {
    int32_t id = -1;
    uint32_t tag = 0;  // of the hash, so that other bytes are told apart without looking at them
  };
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t place(const TokenStore& store, std::string_view bytes, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i].id >= 0 && (slots_[i].tag != tag_of(hash) || store[slots_[i].id] != bytes)) i = (i + 1) & mask;
    return i;
  }
  std::vector<Slot> slots_;
};

}  // namespace bary
