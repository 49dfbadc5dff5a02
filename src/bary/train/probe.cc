// SPDX-License-Identifier: Apache-2.0
#include "bary/train/probe.h"

#include <algorithm>
#include <cstring>

#include "bary/base/random.h"

namespace bary {

CausalityReport probe_causality(const LanguageModel& model, uint64_t seed) {
  const int64_t T = std::min<int64_t>(model.config().block_size, 256), V = model.config().vocab_size;
  RandomStream random(seed, Purpose::probe);
  std::vector<int32_t> ids(static_cast<size_t>(T));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  const Tensor before = model.hidden(ids, 1);
  for (int64_t keep = 1; keep < T; keep = 2 * keep + 1) {
    std::vector<int32_t> other = ids;
    for (int64_t t = keep; t < T; ++t)
      other[static_cast<size_t>(t)] = static_cast<int32_t>((other[static_cast<size_t>(t)] + 1) % V);
    const Tensor after = model.hidden(other, 1);
    for (int64_t t = 0; t < keep; ++t) {
      if (std::memcmp(before.row(t), after.row(t), static_cast<size_t>(before.channels()) * 4) != 0)
        return {false, keep, t};
    }
  }
  return {};
}

}  // namespace bary
