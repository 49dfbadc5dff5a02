// SPDX-License-Identifier: Apache-2.0
// A text as a chain of tokens that are joined in place, in four bytes of memory per byte of text and without links:
// a token's id stands at its first and at its last byte, so both neighbours are one look away.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bary {

class TokenChain {
 public:
  static constexpr int32_t kEdge = -1;  // before the first token and after the last, and between pieces

  // length[id] in bytes; it may grow while the chain is used.
  explicit TokenChain(const std::vector<int32_t>& length) : length_(length) { ids_.push_back(kEdge); }

  void reserve(size_t bytes) { ids_.reserve(bytes + 2); }
  void append(int32_t one_byte_token) { ids_.push_back(one_byte_token); }
  void append_edge() { ids_.push_back(kEdge); }
  size_t size() const { return ids_.size(); }  // positions, edges included

  size_t length(int32_t id) const { return static_cast<size_t>(length_[static_cast<size_t>(id)]); }
  int32_t at(size_t position) const { return ids_[position]; }          // where a token begins
  int32_t before(size_t position) const { return ids_[position - 1]; }  // the token that ends there
  int32_t after(size_t position) const { return ids_[position + length(ids_[position])]; }

  // Do tokens left, right stand at a position where `left` began at some time?
  bool stands(size_t position, int32_t left, int32_t right) const {
    return ids_[position] == left && ids_[position + length(left)] == right;
  }

  // left right -> merged, at a place where they stand.
  void join(size_t position, int32_t left, int32_t right, int32_t merged) {
    const size_t middle = position + length(left);
    ids_[position] = merged;
    ids_[middle] = kInside;  // so that nothing stands here any more
    ids_[middle + length(right) - 1] = merged;
  }

 private:
  static constexpr int32_t kInside = -2;
  const std::vector<int32_t>& length_;
  std::vector<int32_t> ids_;
};

}  // namespace bary
