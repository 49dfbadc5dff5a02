// SPDX-License-Identifier: Apache-2.0
// The scores of additive attention (Bahdanau, Cho and Bengio 2015): s_tj = v . tanh(q_t + k_j), of one sequence.
// T queries, S keys, A channels. The T S A values of tanh are never stored: backward makes them again.
#pragma once
#include <cstdint>

#include "bary/kernel/strided.h"

namespace bary::kernel {

struct AdditiveInputs {
  int64_t T, S, A;
  Strided<const float> q, k;  // (T,A), (S,A)
  const float* v;             // (A)
};
void additive_scores(const AdditiveInputs& in, Strided<float> scores);  // (T,S)

struct AdditiveGradients {
  Strided<float> dq;   // (T,A)
  Strided<float> dk;   // (S,A)
  Strided<float> sum;  // (T,A): row t is query t's part of the gradient of v, the sum over j of ds_tj tanh(q_t + k_j)
};
// All three are written, not added to.
void additive_scores_backward(const AdditiveInputs& in, Strided<const float> dscores, const AdditiveGradients& g);

}  // namespace bary::kernel
