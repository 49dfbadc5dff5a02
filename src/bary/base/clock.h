// SPDX-License-Identifier: Apache-2.0
// Wall time for progress and measurement only: no result may depend on it.
#pragma once
#include <chrono>

namespace bary {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
 public:
  double seconds() const { return seconds_now() - start_; }
  void restart() { start_ = seconds_now(); }

 private:
  double start_ = seconds_now();
};

}  // namespace bary
