// SPDX-License-Identifier: Apache-2.0
// What one pass through a model needs to know besides its input: handed in, never global.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bary/tensor/attention.h"
#include "bary/tensor/recurrent.h"

namespace bary {

// Of recurrent layers, one state each; no layers at all: zeros
struct RecurrentStates {
  std::vector<RecurrentState> layers;
};

// What a source leaves for the target that reads it: the rows of its encoder, padded, and how far each source goes.
struct Memory {
  Tensor states;                 // (B,S,C)
  std::vector<int64_t> lengths;  // B
  RecurrentStates last;          // of a recurrent encoder: what its decoder starts from
  Tensor keys = {};              // (B,S,C), what additive attention makes of the states, once a source
};

// What earlier positions left behind, one entry a layer: keys and values, the running sum of a uniform average, or a
// recurrent state.
struct KvCache {
  std::vector<std::unique_ptr<KeyValues>> attention;
  std::vector<Tensor> average;                     // (B,C)
  RecurrentStates recurrent;                       // none yet: before the first position
  std::vector<std::unique_ptr<KeyValues>> memory;  // of the sources, laid out by the first pass; sequence b reads
  std::vector<int64_t> source;                     // source[b] of them
  int64_t length = 0, capacity = 0;

  void reorder(const std::vector<int64_t>& from);  // sequence b goes on from what from[b] was
};

Tensor rows_of(const Tensor& x, std::span<const int64_t> which);  // a copy, of states: no gradient

struct Pass {
  bool training = false;        // dropout on
  uint64_t seed = 0, step = 0;  // dropout's names: this step's masks,
  uint64_t sequence = 0;        // for this and the following sequences
  KvCache* cache = nullptr;
  const Memory* memory = nullptr;  // what cross-attention reads
  int64_t truncate = 0;            // steps a gradient goes back in recurrent layers, 0: all
  // One number a sequence, or none: tokens that are there, where every one is seen (mask full); tokens at the front
  // that all of a causal sequence may see.
  std::span<const int64_t> lengths, prefix;

  int64_t first() const { return cache ? cache->length : 0; }  // absolute position of the input's first column
};

// The sites of a layer where dropout sits (Vaswani et al. 2017, section 5.4).
enum class DropSite : uint32_t { embedding = 0, attention = 1, mixer = 2, mlp = 3, cross_attention = 4, cross = 5 };

inline kernel::DropoutSite drop_site(double p, const Pass& pass, int64_t layer, DropSite site) {
  if (!pass.training) return {};
  return {static_cast<float>(p), pass.seed, pass.step, static_cast<uint32_t>(layer), static_cast<uint32_t>(site)};
}

}  // namespace bary
