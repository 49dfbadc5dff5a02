// SPDX-License-Identifier: Apache-2.0
// Small row operations of a transformer: sums, table look-ups, activations on their own, the running average,
// rotations.
#pragma once
#include <cstdint>

#include "bary/kernel/gemm.h"

namespace bary::kernel {

void add_rows(int64_t rows, int64_t n, const float* a, int64_t lda, float* y, int64_t ldy);  // y += a

// y = act(x), derivative (may be null) = act'(x); y may be x
void activate_rows(Activation act, int64_t rows, int64_t n, float* x, int64_t ldx, float* derivative, int64_t ldd);

// The uniform average over the prefix: y_t = (x_0 + ... + x_t) / (t+1); one running sum a channel.
// `sum` (n) carries the running sum between calls that continue at position `first`.
void prefix_mean(int64_t T, int64_t n, int64_t first, const float* x, int64_t ldx, float* sum, float* y, int64_t ldy);
// dx_j (+)= sum_{t >= j} dy_t / (t+1), from the last row upwards
void prefix_mean_backward(int64_t T, int64_t n, const float* dy, int64_t ldy, float* dx, int64_t ldx, bool accumulate);

// Rotary positions (Su et al. 2021, Hugging Face's pairing): channels i and i + D/2 of a head turn by the angle of
// their position, angle_i = position theta^(-2i/D). cosines, sines (T, D/2) of the rows' positions. sign -1 turns back.
void rotate_rows(int64_t T, int64_t heads, int64_t D, float* x, int64_t ldx, const float* cosines, const float* sines,
                 float sign);

}  // namespace bary::kernel
