// SPDX-License-Identifier: Apache-2.0
// What the target of an encoder-decoder reads of its source.
#pragma once
#include <vector>

#include "bary/model/seq2seq.h"

namespace bary {

// Patterns of cross-attention for one pair, teacher-forced, one tensor (1,H,T,S) a block of the target: row t is what
// was read before token t was written, the last row before the end; columns are the source's tokens.
std::vector<Tensor> cross_patterns(const Seq2Seq& model, const PairBatch& pair);

Tensor mean_over_heads(const Tensor& pattern);  // (1,H,T,S) -> (T,S)

// The share of a head's reading at column column_of(t) of rows 0 .. rows-1: how diagonal (j = t) or anti-diagonal
// (j = n-1-t) it is.
double mass_on(const Tensor& pattern, int64_t head, int64_t rows, int64_t (*column_of)(int64_t t, int64_t rows));

}  // namespace bary
