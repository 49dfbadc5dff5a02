// SPDX-License-Identifier: Apache-2.0
// Reads the golden files that tools/reference made with PyTorch, and compares with them. Bounds have the form
//   factor * eps * sqrt(n) * scale
// n = length of the longest chain of sums, scale = largest true value: rounding errors of a chain add up like a random
// walk, and each is eps times the size of what is summed. A NaN is never within a bound.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "bary/base/file.h"
#include "bary/io/safetensors.h"
#include "bary/model/language_model.h"
#include "bary/tensor/tape.h"

namespace bary::parity {

constexpr double kEps = 0x1p-24;  // half the distance from 1 to the next float: one rounding

class Golden {
 public:
  explicit Golden(const std::string& name)
      : path_(std::string(BARY_SOURCE_DIR) + "/tests/golden/" + name + ".safetensors"),
        file_(path_),
        bytes_(read_file(path_)) {}

  bool has(const std::string& name) const { return file_.contains(name); }
  std::vector<float> floats(const std::string& name) const { return file_.read(name); }
  std::vector<double> doubles(const std::string& name) const { return raw<double>(name, "F64"); }
  std::vector<int32_t> integers(const std::string& name) const { return raw<int32_t>(name, "I32"); }
  Shape shape(const std::string& name) const {
    const FileShape& s = file_.info(name).shape;
    switch (s.size()) {
      case 0:
        return Shape{1};
      case 1:
        return Shape{s[0]};
      case 2:
        return Shape{s[0], s[1]};
      case 3:
        return Shape{s[0], s[1], s[2]};
      default:
        return Shape{s[0], s[1], s[2], s[3]};
    }
  }
  Tensor tensor(const std::string& name) const { return Tensor::from(shape(name), floats(name)); }
  Tensor wanted(const std::string& name) const { return tensor(name).require_grad(); }  // its gradient too
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, info] : file_.tensors()) out.push_back(name);
    return out;
  }

 private:
  template <class T>
  std::vector<T> raw(const std::string& name, const std::string& dtype) const {
    const SafetensorsFile::Info& i = file_.info(name);
    EXPECT_EQ(i.dtype, dtype) << name;
    std::vector<T> v(static_cast<size_t>(i.count));
    std::memcpy(v.data(), bytes_.data() + i.begin, v.size() * sizeof(T));
    return v;
  }
  std::string path_;
  SafetensorsFile file_;
  std::string bytes_;
};

inline double largest(std::span<const float> x) {
  double m = 0;
  for (float v : x) m = std::max(m, std::fabs(static_cast<double>(v)));
  return m;
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double m = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= m)) m = std::isnan(d) ? HUGE_VAL : d;
  }
  return m;
}

// Prints the deviation beside PyTorch's own (`theirs`, float32 against float64, may be empty) and fails beyond `bound`.
inline void expect_within(std::span<const float> got, std::span<const float> truth, double bound,
                          const std::string& what, std::span<const float> theirs = {}) {
  const double d = largest_difference(got, truth);
  EXPECT_LE(d, bound) << what;
  std::string own;
  if (!theirs.empty()) own = fmt::format(", PyTorch's own {:.2e}", largest_difference(theirs, truth));
  std::printf("  %s: largest deviation %.2e (bound %.2e%s)\n", what.c_str(), d, bound, own.c_str());
}

inline double chain_bound(double factor, int64_t n, std::span<const float> truth) {
  return factor * kEps * std::sqrt(static_cast<double>(n)) * std::max(largest(truth), 1e-30);
}

inline void set_parameter(Parameters& p, const std::string& name, std::span<const float> values) {
  const Parameter* q = p.find(name);
  ASSERT_NE(q, nullptr) << name;
  auto to = p.values_of(*q);
  ASSERT_EQ(to.size(), values.size()) << name;
  std::copy(values.begin(), values.end(), to.begin());
}

// Of a parameter, out of the flat buffer of gradients.
inline std::vector<float> gradient_of(const Parameters& p, const std::vector<float>& gradients,
                                      const std::string& name) {
  const Parameter* q = p.find(name);
  EXPECT_NE(q, nullptr) << name;
  if (!q) return {};
  return {gradients.begin() + q->offset, gradients.begin() + q->offset + q->shape.volume()};
}

}  // namespace bary::parity
