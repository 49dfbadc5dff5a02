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
    : config_(config),
      language_(config.has_source() ? nullptr : std::make_unique<LanguageModel>(config, seed)),
      pairs_(config.has_source() ? make_seq2seq(config, seed) : nullptr),
      gradient_(model(), traversal),
      optimizer_(model().parameters(), {}),
      batch_(batch_size),
      flops_(count_flops(config, config.block_size).training * static_cast<double>(batch_size)) {
  RandomStream random(seed, Purpose::test);
  auto some = [&](int64_t n, int64_t vocabulary) {
    std::vector<int32_t> ids(static_cast<size_t>(n));
    for (int32_t& t : ids) t = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary)));
    return ids;
  };
  if (!pairs_) tokens_ = some(batch_size * (config.block_size + 1), config.vocab_size);
  for (int64_t b = 0; pairs_ && b < batch_size; ++b)
    coded_.push_back(
        {some(config.block_size, config.source_vocab_size), some(config.block_size - 1, config.vocab_size)});
}

LossOf StepBench::losses() const {
  if (pairs_)
    return [this](int64_t first, int64_t count, const Pass& pass) {
      const auto from = static_cast<size_t>(first), n = static_cast<size_t>(count);
      return pairs_->loss(batch_of(std::span(coded_).subspan(from, n)), pass);
    };
  const int64_t T = config_.block_size;
  return window_losses(*language_, T, [this, T](int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
    std::copy_n(tokens_.begin() + s * (T + 1), T, in.begin());
    std::copy_n(tokens_.begin() + s * (T + 1) + 1, T, out.begin());
  });
}

double StepBench::run_one() {
  Stopwatch watch;
  Pass pass;
  pass.training = true;
  pass.step = step_++;
  auto r = gradient_.compute(batch_, config_.block_size, losses(), pass);
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
