// SPDX-License-Identifier: Apache-2.0
// Sizes of a tensor, outermost first. The legend everywhere: B batch, T positions, S source positions, C channels,
// H heads, D width of a head, V vocabulary. At most four dimensions, kept inline.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "bary/base/error.h"

namespace bary {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) {
    BARY_CHECK(sizes.size() <= 4, "shape: {} dimensions, at most 4 are supported", sizes.size());
    for (int64_t s : sizes) {
      BARY_CHECK(s >= 0, "shape: size {} is negative", s);
      sizes_[rank_++] = s;
    }
    check_volume();
  }
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return sizes_[i < 0 ? rank_ + i : i]; }  // -1 is the last, as in PyTorch
  int64_t volume() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= sizes_[i];
    return n;
  }
  int64_t channels() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  int64_t rows() const { return channels() == 0 ? 0 : volume() / channels(); }
  Shape with_channels(int64_t c) const {
    BARY_CHECK(rank_ > 0 && c >= 0, "shape: {} channels for a shape of {} dimensions", c, rank_);
    Shape s = *this;
    s.sizes_[rank_ - 1] = c;
    s.check_volume();
    return s;
  }
  bool operator==(const Shape&) const = default;
  std::string str() const;  // (2,3,4)

 private:
  // Sizes are multiplied everywhere, in any order: no product of them overflows.
  void check_volume() const {
    double product = 1;
    for (int i = 0; i < rank_; ++i) product *= static_cast<double>(sizes_[i] > 0 ? sizes_[i] : 1);
    BARY_CHECK(product <= 0x1p60, "shape: {} is of more numbers than could be counted", str());
  }

  std::array<int64_t, 4> sizes_{};
  int rank_ = 0;
};

}  // namespace bary
