// SPDX-License-Identifier: Apache-2.0
// Softmax and its negative log-likelihood over rows of n logits, from the true maximum, so that {0, -200} with target 1
// costs 200 and not infinity.
#pragma once
#include <cstdint>

namespace bary::kernel {

// loss_r = log sum_j exp(x_j) - x_target. A target of -1 is not counted: loss 0, gradient 0.
// losses (rows, double) if not null. The logits are overwritten: with `weight` not 0 they become
// weight (softmax(x) - q), the gradient, and else nothing of use.
// q is one at the target; smoothed by s it is 1 - s there and s/n spread over all (Szegedy et al. 2016, PyTorch's
// label_smoothing), and the loss is then log sum_j exp(x_j) - sum_j q_j x_j.
void cross_entropy_rows(int64_t rows, int64_t n, float* logits, int64_t ld, const int32_t* targets, float weight,
                        double* losses, float smoothing = 0);

// y = softmax(x) over each row of n; y may be x.
void softmax_rows(int64_t rows, int64_t n, const float* x, int64_t ldx, float* y, int64_t ldy);

}  // namespace bary::kernel
