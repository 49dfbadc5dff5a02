// SPDX-License-Identifier: Apache-2.0
// A hash table from a pair of token ids to a small value: open addressing in one flat array, never shrinking, so that a
// look-up is a multiplication and usually one cache line.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bary {

template <class Value>
class PairTable {
 public:
  explicit PairTable(size_t expected = 16) { resize(std::bit_ceil(expected * 2 + 2)); }

  const Value* find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right), bit = mix(key) >> (shift_ - 3);
    if (!(seen_[bit >> 6] >> (bit & 63) & 1)) return nullptr;
    for (size_t i = home(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }
  // For pairs that are nearly always there.
  Value* find(int32_t left, int32_t right) {
    Slot& slot = slots_[place(key_of(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

  // The value of the pair, entered as `value` if it is new; added tells which.
  Value& insert(int32_t left, int32_t right, const Value& value, bool* added = nullptr) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(key_of(left, right))];
    const bool is_new = slot.key == kEmpty;
    if (is_new) slot = {key_of(left, right), value}, ++size_, mark(slot.key);
    if (added != nullptr) *added = is_new;
    return slot.value;
  }

  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // no pair: ids are not negative
  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  // Fibonacci hashing; the fold first, so that both ids reach the bits that are kept.
  static uint64_t mix(uint64_t key) { return (key ^ key >> 29) * 0x9E3779B97F4A7C15; }
  size_t home(uint64_t key) const { return static_cast<size_t>(mix(key) >> shift_); }
  void mark(uint64_t key) {
    const uint64_t bit = mix(key) >> (shift_ - 3);
    seen_[bit >> 6] |= uint64_t{1} << (bit & 63);
  }
  size_t place(uint64_t key) const {
    size_t i = home(key);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & mask_;
    return i;
  }
  void resize(size_t slots) {
    slots_.assign(slots, Slot{});
    mask_ = slots - 1;
    shift_ = 64 - std::countr_zero(slots);
    seen_.assign((slots + 7) / 8, 0);
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    resize(old.size() * 2);
    for (const Slot& slot : old)
      if (slot.key != kEmpty) slots_[place(slot.key)] = slot, mark(slot.key);
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t>
      seen_;  // eight bits a slot: most pairs that are not there are told from a sixteenth of the memory
  size_t mask_ = 0;
  size_t size_ = 0;
  int shift_ = 0;
};

}  // namespace bary
