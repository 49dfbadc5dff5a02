// SPDX-License-Identifier: Apache-2.0
// What a head does, read from its pattern: how widely it looks, and whether it looks where a known kind of head would.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "bary/tensor/tensor.h"

namespace bary {

// H = -sum_j A_j ln A_j in nats (0 ln 0 = 0) and exp(H): how many tokens a row of weights looks at, 1 to its length.
double attention_entropy(std::span<const float> row);
double effective_tokens(std::span<const float> row);

// Where a head of a kind looks from query i, for tokens t (0-based; Olsson et al. 2022, "In-context learning and
// induction heads"): M[i,j] = 1 where
enum class HeadKind {
  previous,   // j = i - 1
  duplicate,  // j < i and t_j = t_i
  induction,  // 1 <= j <= i, j - 1 < i and t_{j-1} = t_i: what followed an earlier occurrence
};
std::vector<uint8_t> detector_mask(HeadKind kind, std::span<const int32_t> tokens);  // (T,T)

// Row mass: over the rows of M with a target, the mean of sum_j A_ij M_ij. A head that looks at nothing else has 1
// however many targets a row has. Beside it what a causal head scores that looks at all it sees alike,
// A_ij = 1/(i+1), and the number of rows: a score means nothing without them.
struct RowMass {
  double score = 0, uniform = 0;  // NaN without rows
  int64_t rows = 0;
};
// One entry a head of the pattern (B,H,T,T) over the B sequences in `ids`. Rows are restricted to i >= first.
std::vector<RowMass> row_mass(HeadKind kind, const Tensor& pattern, std::span<const int32_t> ids, int64_t first = 0);

}  // namespace bary
