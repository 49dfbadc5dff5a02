// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/step.h"

#include <algorithm>
#include <cmath>

#include "bary/base/clock.h"
#include "bary/base/random.h"
#include "bary/kernel/machine.h"
#include "bary/model/count.h"

namespace bary {

StepBench::StepBench(const ModelConfig& config, int64_t batch_size, uint64_t seed, Traversal traversal)
    : model_(config, seed),
      gradient_(model_, traversal),
      optimizer_(model_.parameters(), {}),
      batch_(batch_size),
      flops_(count_flops(config, config.block_size).training * static_cast<double>(batch_size)) {
  RandomStream random(seed, Purpose::test);
  tokens_.resize(static_cast<size_t>(batch_size * (config.block_size + 1)));
  for (int32_t& t : tokens_) t = static_cast<int32_t>(random.below(static_cast<uint64_t>(config.vocab_size)));
}

double StepBench::run_one() {
  Stopwatch watch;
  const int64_t T = model_.config().block_size;
  Pass pass;
  pass.training = true;
  pass.step = step_++;
  auto r = gradient_.compute(
      batch_, T,
      [&](int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
        std::copy_n(tokens_.begin() + s * (T + 1), T, in.begin());
        std::copy_n(tokens_.begin() + s * (T + 1) + 1, T, out.begin());
      },
      pass);
  optimizer_.step(gradient_.values(), r.tokens, 1e-3);
  loss_ = r.mean();
  return watch.seconds();
}

StepFigures measure_steps(StepBench& bench, int64_t steps, int64_t warm_up) {
  for (int64_t i = 0; i < warm_up; ++i) bench.run_one();
  StepFigures f;
  std::vector<double> tile, fma;
  double before = kernel::measure_tile_peak(0.02);
  for (int64_t i = 0; i < steps; ++i) {
    const double s = bench.run_one(), after = kernel::measure_tile_peak(0.02), peak = kernel::measure_fma_peak(0.02);
    const double rate = bench.flops() / s / 1e9;
    f.milliseconds.push_back(s * 1e3);
    f.share_of_tile.push_back(rate / (0.5 * (before + after)));
    f.share_of_fma.push_back(rate / peak);
    tile.push_back(after), fma.push_back(peak);
    before = after;
  }
  f.tile_gflops = median(tile), f.fma_gflops = median(fma);
  return f;
}

double quantile(std::vector<double> v, double q) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(std::lround(q * static_cast<double>(v.size() - 1)))];
}
double median(std::vector<double> v) { return quantile(std::move(v), 0.5); }

}  // namespace bary
