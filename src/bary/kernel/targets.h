// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels are built for, as preprocessor settings; include before any Highway header.
// Those named below are all: every other one that Highway has or gets is left out. The targets of SSE age have no fused
// multiply-add (they round twice), so they cannot give the same bits, and vec-inl.h has no vector of sixteen for the
// rest. HWY_SCALAR and HWY_EMU128 stand for the baseline, which is plain C++ over std::fma.
#pragma once
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS (~(HWY_AVX3 | HWY_AVX2 | HWY_NEON | HWY_SCALAR | HWY_EMU128))
