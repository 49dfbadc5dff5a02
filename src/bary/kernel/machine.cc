// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/machine.h"

#include <atomic>
#include <vector>

#include "bary/base/clock.h"
#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/machine.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// Independent chains enough to cover the latency of every unit; returns operations done.
double FmaLoop(int64_t rounds, float* sink) {
  constexpr int kChains = BARY_SCALAR ? 1 : HWY_TARGET == HWY_AVX3 ? 12 : 5;  // registers, not memory
  V16 a[kChains];
  const V16 b = set1(0.9999f), c = set1(1e-5f);
  for (int i = 0; i < kChains; ++i) a[i] = set1(1.0f + static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r) {
    BARY_UNROLL for (int i = 0; i < kChains; ++i) a[i] = fma(a[i], b, c);
  }
  V16 s = zero();
  for (int i = 0; i < kChains; ++i) s = s + a[i];
  *sink = sum_lanes(s);
  return static_cast<double>(rounds) * kChains * 32;
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(FmaLoop);

namespace {
// work(worker) returns operations; the rate of all threads over the time in which all of them run
template <class Work>
double rate_on_all_threads(double seconds, Work work) {
  const int n = threads();
  std::vector<double> operations(static_cast<size_t>(n), 0.0), spent(static_cast<size_t>(n), 1.0);
  std::atomic<int> arrived{0};
  parallel_tasks(n, [&](int64_t i, int) {
    arrived.fetch_add(1);
    Stopwatch waiting;
    while (arrived.load() < n && waiting.seconds() < 0.01) {
    }
    Stopwatch watch;
    double done = 0;
    while (watch.seconds() < seconds) done += work(i);
    operations[static_cast<size_t>(i)] = done;
    spent[static_cast<size_t>(i)] = watch.seconds();
  });
  double total = 0;
  for (size_t i = 0; i < operations.size(); ++i) total += operations[i] / spent[i];
  return total / 1e9;
}
}  // namespace

double measure_fma_peak(double seconds) {
  return rate_on_all_threads(seconds, [](int64_t) {
    float sink = 0;
    double n = HWY_DYNAMIC_DISPATCH(FmaLoop)(20000, &sink);
    return sink == 12345.0f ? 0 : n;
  });
}

double measure_tile_peak(double seconds) {
  constexpr int64_t M = 126, N = 384, K = 128, lda = K + 16, ldc = N + 16;
  std::vector<std::vector<float>> memory(static_cast<size_t>(threads()));
  for (auto& m : memory) m.assign(static_cast<size_t>(M * lda + packed_size(N, K) + M * ldc), 0.5f);
  return rate_on_all_threads(seconds, [&](int64_t i) {
    float* a = memory[static_cast<size_t>(i)].data();
    float* b = a + M * lda;
    gemm(M, N, K, a, lda, b, b + packed_size(N, K), ldc);
    return 2.0 * M * N * K;
  });
}

}  // namespace bary::kernel
#endif
