// SPDX-License-Identifier: Apache-2.0
#include "bary/train/chosen.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/kernel/loss.h"

namespace bary {

Evaluation judged(const Tensor& logits, std::span<const int32_t> targets) {
  const int64_t rows = logits.rows(), V = logits.channels(), B = logits.dim(0), T = rows / std::max<int64_t>(B, 1);
  std::vector<int64_t> wrong(static_cast<size_t>(B), 0), asked(static_cast<size_t>(B), 0);
  BARY_CHECK(std::ssize(targets) == rows, "judged: {} targets for {} rows of logits", targets.size(), rows);
  Evaluation e;
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t target = targets[static_cast<size_t>(r)];
    if (target < 0) continue;
    BARY_CHECK(target < V, "a target is token {} of a vocabulary of {}; do text and model belong together?", target, V);
    const auto b = static_cast<size_t>(r / T);
    const float* x = logits.row(r);
    const bool hit = std::max_element(x, x + V) - x == target;
    ++asked[b], ++e.tokens;
    e.right += hit, wrong[b] += !hit;
  }
  for (size_t b = 0; b < asked.size(); ++b) e.sequences += asked[b] > 0, e.exact += asked[b] > 0 && wrong[b] == 0;
  std::vector<double> losses(static_cast<size_t>(rows));
  kernel::cross_entropy_rows(rows, V, logits.data(), logits.stride(), targets.data(), 0, losses.data());
  for (double l : losses) e.loss_sum += l;
  return e;
}

void add(const Evaluation& p, Evaluation& total) {
  total.loss_sum += p.loss_sum, total.tokens += p.tokens, total.bytes += p.bytes;
  total.right += p.right, total.sequences += p.sequences, total.exact += p.exact;
}

}  // namespace bary
