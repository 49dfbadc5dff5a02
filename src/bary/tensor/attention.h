// SPDX-License-Identifier: Apache-2.0
// Multi-head attention on projected queries, keys and values, fused: it never stores (T,S) for long texts. The same
// from plain operations is attention_by_definition: document, oracle, and what runs when somebody edits a pattern.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "bary/tensor/ops.h"
#include "bary/tensor/rotary.h"

namespace bary {

// Keys and values of earlier positions of one layer, in the form the kernel reads: keys transposed in panels, values in
// rows, both per sequence and key head.
struct KeyValues {
  KeyValues(int64_t B, int64_t heads, int64_t D, int64_t capacity);
  int64_t B, heads, D, capacity;
  int64_t length = 0;  // positions held, the same for every sequence
  int64_t value_stride;
  std::vector<Buffer> keys, values;  // B * heads of each

  // Sequence b goes on from what sequence from[b] held (beam search); as many sequences as `from` names.
  void reorder(const std::vector<int64_t>& from);
};

struct AttentionOptions {
  int64_t heads = 1, kv_heads = 0;  // kv_heads 0 = heads; fewer: each serves heads / kv_heads queries' heads in turn
  Mask mask = Mask::causal;
  int64_t window = 0;
  bool scale = true;                    // 1 / sqrt(D)
  bool alibi = false;                   // slope 2^(-8 (h+1) / H) of head h
  const RotaryTable* rotary = nullptr;  // outlives the tape
  kernel::DropoutSite dropout;
  DropoutRows rows;            // what dropout calls sequence 0 and position 0
  KeyValues* cache = nullptr;  // read and extended; not under a tape
  // One number a sequence, or none. lengths: keys that are there; those past it are padding, seen by nobody, and their
  // own rows come out as zeros. prefix: keys that every query of a causal mask sees.
  std::vector<int64_t> lengths, prefix;
  // Sees the pattern (B,H,T,S) as the kernel computed it, or as an edit left it; S counts what a cache holds. Null:
  // nobody looks.
  std::function<void(const Tensor&)> look;
};

// qkv (B,T,(H + 2 Hkv) D): queries of all heads, then keys, then values, side by side. -> (B,T,H D)
Tensor attention(const Tensor& qkv, const AttentionOptions& o);

// softmax(mask(q k^T scale)) v from plain operations; `edit` may replace the pattern (B H,T,S), and
// o.look sees what it made of it. No dropout, no cache.
Tensor attention_by_definition(const Tensor& qkv, const AttentionOptions& o,
                               const std::function<Tensor(const Tensor&)>& edit = {});

// Queries of one text over the keys and values of another (Vaswani et al. 2017, section 3.2.3), which all may be seen
// as far as o.lengths says: q (B,T,H D), kv (B,S,2 Hkv D) -> (B,T,H D). o.mask must be full; neither side is turned.
Tensor cross_attention(const Tensor& q, const Tensor& kv, const AttentionOptions& o);
Tensor cross_attention_by_definition(const Tensor& q, const Tensor& kv, const AttentionOptions& o,
                                     const std::function<Tensor(const Tensor&)>& edit = {});

// The same for decoding: keys and values of every source laid out once, and sequence b reads source of[b].
KeyValues memorise(const Tensor& kv, int64_t kv_heads);
Tensor cross_attention(const Tensor& q, const KeyValues& memory, const std::vector<int64_t>& of,
                       const AttentionOptions& o);

float alibi_slope(int64_t head, int64_t heads);

}  // namespace bary
