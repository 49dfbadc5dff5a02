// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/machine.h"

#include <atomic>
#include <vector>

#include "bary/base/clock.h"
#include "bary/base/parallel.h"
#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/machine.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/tile-inl.h"

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

// The register tile alone, without prefetch or epilogue, over operands that stay in the second-level cache: what a
// product could reach if everything around its inner loop were free. Returns operations done.
constexpr int64_t kTileM = 126, kTileN = 384, kTileK = 128, kTileA = kTileK + 16, kTileC = kTileN + 16;
double TileLoop(float* memory) {
  const float *a = memory, *b = a + kTileM * kTileA;
  float* c = memory + kTileM * kTileA + kTileK * kTileN;
  for (int64_t j = 0; j < kTileN; j += 16 * kVectors) {
    for (int64_t i = 0; i < kTileM; i += kRows) {
      auto t = zero_tile<kRows, kVectors>();
      multiply(t, kTileK, a + i * kTileA, kTileA, 1, b + j * kTileK, 16 * kVectors);
      BARY_UNROLL for (int r = 0; r < kRows; ++r) {
        BARY_UNROLL for (int v = 0; v < kVectors; ++v) store(t.v[r][v], c + (i + r) * kTileC + j + 16 * v);
      }
    }
  }
  return 2.0 * kTileM * kTileN * kTileK;
}
// a = b + s c over n floats each, a multiple of 16. Returns bytes moved.
double Triad(float* a, const float* b, const float* c, int64_t n) {
  const V16 s = set1(0.5f);
  for (int64_t i = 0; i < n; i += 16) store(fma(s, load(c + i), load(b + i)), a + i);
  return 12.0 * static_cast<double>(n);
}
int64_t TileMemory() { return kTileM * kTileA + kTileK * kTileN + kTileM * kTileC; }

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(FmaLoop);
HWY_EXPORT(TileLoop);
HWY_EXPORT(TileMemory);
HWY_EXPORT(Triad);

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
  std::vector<std::vector<float>> memory(static_cast<size_t>(threads()));
  for (auto& m : memory) m.assign(static_cast<size_t>(HWY_DYNAMIC_DISPATCH(TileMemory)()), 0.5f);
  return rate_on_all_threads(
      seconds, [&](int64_t i) { return HWY_DYNAMIC_DISPATCH(TileLoop)(memory[static_cast<size_t>(i)].data()); });
}

double measure_stream(double seconds) {
  constexpr int64_t kFloats = int64_t{1} << 23;  // 96 MiB a thread in three arrays
  std::vector<std::vector<float>> memory(static_cast<size_t>(threads()));
  parallel_tasks(threads(), [&](int64_t i, int) { memory[static_cast<size_t>(i)].assign(3 * kFloats, 1.0f); });
  return rate_on_all_threads(seconds, [&](int64_t i) {
    float* a = memory[static_cast<size_t>(i)].data();
    return HWY_DYNAMIC_DISPATCH(Triad)(a, a + kFloats, a + 2 * kFloats, kFloats);
  });
}

}  // namespace bary::kernel
#endif
