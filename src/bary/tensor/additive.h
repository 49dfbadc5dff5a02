// SPDX-License-Identifier: Apache-2.0
// The scores of additive attention (Bahdanau, Cho and Bengio 2015): score_tj = v . tanh(q_t + k_j). q and k are queries
// and keys after their own matrices. (B,T,A), (B,S,A), (A) -> (B,T,S)
#pragma once
#include "bary/tensor/tensor.h"

namespace bary {

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v);

}  // namespace bary
