// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011). A stream is named, not advanced: the same (seed, purpose, step, index) gives the same numbers whatever
// was drawn before, by whichever thread, before or after a resume. So nothing has to be saved and nothing repeats.
#pragma once
#include <array>
#include <cstdint>

namespace bary {

// One number per use of randomness, so that two uses never share a stream. Append only: the values are part of the
// bits.
enum class Purpose : uint32_t {
  init = 1,        // a parameter's first values; step = chunk of 2^14 of them, index = hash (FNV-1a) of its name
  batch = 2,       // the windows of a training step; index = global sequence
  eval_batch = 3,  // the fixed windows of an evaluation during a run
  dropout = 4,     // masks
  sample = 5,      // generated tokens; step = token, index = prompt
  synthetic = 6,   // built-in languages
  probe = 7,       // the causality probe
  test = 8,
  mask = 9,  // what a masked language model is asked for; index = global sequence
};

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class RandomStream {
 public:
  RandomStream(uint64_t seed, Purpose purpose, uint64_t step = 0, uint64_t index = 0);
  uint32_t next();   // uniform over all 2^32 values
  double uniform();  // [0, 1), 53 random bits
  double uniform(double lo, double hi) { return lo + (hi - lo) * uniform(); }
  double normal();             // N(0,1): Box-Muller over the portable log, sqrt and cos
  uint64_t below(uint64_t n);  // uniform over 0 .. n-1, n >= 1, without modulo bias

 private:
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace bary
