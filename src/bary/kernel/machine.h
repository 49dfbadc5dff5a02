// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, measured: the yardstick for "share of peak". Machines drift, so it is measured
// beside what it is compared with.
#pragma once

namespace bary::kernel {

// Fused multiply-adds on registers alone, on all threads at once, for about `seconds`; in 10^9 operations a second, a
// multiply-add counting as two.
double measure_fma_peak(double seconds = 0.05);
// The register tile of gemm() hot in cache (126 x 384 x 128), on all threads: what a perfect step could reach.
double measure_tile_peak(double seconds = 0.05);
// Memory, all threads at once: a = b + s c over arrays larger than any cache (McCalpin's triad), in 10^9 bytes a
// second, three floats counted an element.
double measure_stream(double seconds = 0.2);

}  // namespace bary::kernel
