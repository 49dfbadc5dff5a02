// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels are built for, as preprocessor settings; include before any Highway header.
// The targets of SSE age and Highway's own emulation have no fused multiply-add (they round twice), so they cannot give
// the same bits and are left out; the baseline is plain C++ over std::fma.
#pragma once
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
