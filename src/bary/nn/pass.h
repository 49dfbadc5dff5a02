// SPDX-License-Identifier: Apache-2.0
// What one pass through a model needs to know besides its input: handed in, never global.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "bary/tensor/attention.h"

namespace bary {

// What earlier positions left behind, one entry a layer: keys and values, or the running sum of a uniform average.
struct KvCache {
  std::vector<std::unique_ptr<KeyValues>> attention;
  std::vector<Tensor> average;  // (B,C)
  int64_t length = 0, capacity = 0;
};

struct Pass {
  bool training = false;        // dropout on
  uint64_t seed = 0, step = 0;  // dropout's names: this step's masks,
  uint64_t sequence = 0;        // for this and the following sequences
  KvCache* cache = nullptr;

  int64_t first() const { return cache ? cache->length : 0; }  // absolute position of the input's first column
};

// The sites of a layer where dropout sits (Vaswani et al. 2017, section 5.4).
enum class DropSite : uint32_t { embedding = 0, attention = 1, mixer = 2, mlp = 3 };

inline kernel::DropoutSite drop_site(double p, const Pass& pass, int64_t layer, DropSite site) {
  if (!pass.training) return {};
  return {static_cast<float>(p), pass.seed, pass.step, static_cast<uint32_t>(layer), static_cast<uint32_t>(site)};
}

}  // namespace bary
