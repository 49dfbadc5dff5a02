// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: memory that faults when a kernel leaves it, the loop over instruction sets, and
// comparisons that a NaN fails.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bary/base/random.h"
#include "bary/kernel/target.h"

namespace bary::kernel {

constexpr double kEps = FLT_EPSILON;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BARY_SLOW_BUILD true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BARY_SLOW_BUILD true
#endif
#endif
#ifndef BARY_SLOW_BUILD
#define BARY_SLOW_BUILD false
#endif
constexpr bool kSlowBuild = BARY_SLOW_BUILD;  // instrumented kernels take ten times as long: fewer sizes
// Around every border that a kernel has: a vector, a panel of one vector, a panel of four.
inline const std::vector<int64_t> kSizes{1, 3, 15, 16, 17, 31, 63, 64, 65, 127, 130};

// Rows of n floats, ld apart. The last one ends at a page that may not be touched, so the start is aligned to nothing
// in particular; the gaps between rows hold NaN that must neither be used nor be overwritten.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t n, int64_t ld = 0) : rows_(rows), n_(n), ld_(ld ? ld : n) {
    const size_t page = 4096, bytes = static_cast<size_t>(floats()) * 4;
    size_ = (bytes + page - 1) / page * page + page;
    map_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED || mprotect(map_ + size_ - page, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = reinterpret_cast<float*>(map_ + size_ - page - bytes);
    for (int64_t i = 0; i < floats(); ++i) std::memcpy(data_ + i, &kUntouched, 4);
  }
  Matrix(Matrix&& o) noexcept
      : rows_(o.rows_), n_(o.n_), ld_(o.ld_), size_(o.size_), map_(std::exchange(o.map_, nullptr)), data_(o.data_) {}
  ~Matrix() {
    if (map_) munmap(map_, size_);
  }
  Matrix& random(uint64_t seed, double scale = 1, double shift = 0) {
    RandomStream stream(seed, Purpose::test);
    return set([&](int64_t, int64_t) { return static_cast<float>(stream.normal() * scale + shift); });
  }
  Matrix& fill(float x) {
    return set([x](int64_t, int64_t) { return x; });
  }
  template <class F>
  Matrix& set(F f) {
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t c = 0; c < n_; ++c) (*this)(r, c) = f(r, c);
    return *this;
  }
  float* data() { return data_; }
  const float* data() const { return data_; }
  int64_t rows() const { return rows_; }
  int64_t n() const { return n_; }
  int64_t ld() const { return ld_; }
  float& operator()(int64_t r, int64_t c) { return data_[r * ld_ + c]; }
  float operator()(int64_t r, int64_t c) const { return data_[r * ld_ + c]; }
  std::vector<float> values() const {
    std::vector<float> v;
    for (int64_t r = 0; r < rows_; ++r) v.insert(v.end(), data_ + r * ld_, data_ + r * ld_ + n_);
    return v;
  }
  std::vector<double> doubles() const {
    std::vector<float> v = values();
    return {v.begin(), v.end()};
  }
  bool gaps_untouched() const {
    for (int64_t r = 0; r + 1 < rows_; ++r)
      for (int64_t c = n_; c < ld_; ++c)
        if (std::memcmp(data_ + r * ld_ + c, &kUntouched, 4) != 0) return false;
    return true;
  }

 private:
  static constexpr uint32_t kUntouched = 0x7fc0beef;  // a NaN
  int64_t floats() const { return rows_ == 0 ? 0 : (rows_ - 1) * ld_ + n_; }
  int64_t rows_, n_, ld_;
  size_t size_ = 0;
  char* map_ = nullptr;
  float* data_ = nullptr;
};

inline Matrix random_matrix(int64_t rows, int64_t n, int64_t ld, uint64_t seed, double scale = 1, double shift = 0) {
  Matrix m(rows, n, ld);
  m.random(seed, scale, shift);
  return m;
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  if (got.empty() || std::memcmp(got.data(), want.data(), got.size() * 4) == 0) return;
  size_t wrong = 0, first = got.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], 4) == 0) continue;
    first = std::min(first, i);
    ++wrong;
  }
  ADD_FAILURE() << what << ": " << wrong << " of " << got.size() << " differ, the first at " << first << ": "
                << ::testing::PrintToString(got[first]) << " and " << ::testing::PrintToString(want[first]);
}

inline void expect_close(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || std::fabs(got[i] - want[i]) <= tolerance) continue;  // a NaN is not close
    ADD_FAILURE() << what << ": at " << i << " " << got[i] << ", expected " << want[i] << " within " << tolerance;
    return;
  }
}

inline double largest(const std::vector<double>& x) {
  double m = 0;
  for (double v : x) m = std::max(m, std::fabs(v));
  return m;
}

class KeepIsa {  // the instruction set of now again at the end
 public:
  KeepIsa() : was_(active_isa()) {}
  ~KeepIsa() { force_isa(was_); }
  KeepIsa(const KeepIsa&) = delete;
  KeepIsa& operator=(const KeepIsa&) = delete;

 private:
  std::string was_;
};

// f() on each instruction set in turn: all must give the same bytes. Returns those of the first.
template <class F>
std::vector<float> on_every_isa(const std::string& what, F f) {
  KeepIsa keep;
  const std::vector<std::string> isas = available_isas();
  std::vector<float> first;
  for (const std::string& isa : isas) {
    force_isa(isa);
    std::vector<float> got = f();
    if (isa == isas.front()) {
      first = got;
    } else {
      expect_same_bits(got, first, what + ": " + isa + " against " + isas.front());
    }
  }
  return first;
}

inline void append(std::vector<float>& to, const std::vector<float>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace bary::kernel
