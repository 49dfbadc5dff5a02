// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of one head of one sequence (Vaswani et al. 2017), in tiles that never hold the T x S
// matrix (online softmax: Milakov and Gimelshein 2018; Dao et al. 2022):
//   out_t = sum_j p_tj v_j,   p_t = softmax over the keys j that t may see of  scale q_t k_j - slope |t - j|
// Keys come in blocks of 256 at absolute positions, whatever the T of the call, and each query row sees one arithmetic:
// a row computed alone (decoding with a cache) has the bits it has inside a full pass.
#pragma once
#include <cstdint>

#include "bary/kernel/dropout.h"

namespace bary::kernel {

constexpr int64_t kKeyBlock = 256;

struct AttentionHead {
  int64_t T = 0, S = 0, D = 0;  // queries, keys, width of the head
  int64_t first = 0;            // absolute position of query 0; keys stand at 0 .. S-1
  bool causal = true;           // query t sees keys j <= t, itself included
  int64_t window = 0;           // and j > t - window; 0 = no limit
  int64_t prefix = 0;           // keys before it are seen by every query, causal or not (a prefix language model's)
  float scale = 1;
  float slope = 0;  // ALiBi (Press et al. 2022): the penalty on the distance |t - j|, both ways under a full mask
  DropoutSite dropout;
  uint64_t sequence = 0;  // names the dropout row together with `head`
  uint32_t head = 0;

  int64_t low(int64_t t) const { return window && first + t + 1 > window ? first + t + 1 - window : 0; }
  int64_t high(int64_t t) const {  // one past the last
    const int64_t seen = first + t + 1 > prefix ? first + t + 1 : prefix;
    return causal && seen < S ? seen : S;
  }
};

// Keys (or values) of one head transposed into panels of panel_width() positions: [S / width][D][width], zeros past S.
int64_t key_panel_size(int64_t S, int64_t D);  // floats
void pack_keys(const float* k, int64_t ldk, int64_t S, int64_t D, float* panels);
// One more key at position s of panels with room for it (the cache's append); a panel's first key clears the panel.
void append_key(const float* key, int64_t s, int64_t D, float* panels);

// Row stride of a stored pattern or score row.
inline int64_t pattern_stride(int64_t S) { return (S + 15) / 16 * 16 + 16; }

struct AttentionKept {           // what the backward pass and watchers need
  float* row_max = nullptr;      // (T) maximal score
  float* row_inverse = nullptr;  // (T) 1 / sum of exp(score - max)
  float* pattern = nullptr;      // (T, pattern_stride(S)) p before dropout, only for S <= 256; null: recomputed
};

void attention_forward(const AttentionHead& head, const float* q, int64_t ldq, const float* key_panels, const float* v,
                       int64_t ldv, float* out, int64_t ldo, const AttentionKept& kept);

// p (T, ld) from row_max and row_inverse. Over at most kKeyBlock keys these are the bits that the forward pass used;
// over more it rescales from block to block as the maximum grows, and its last bits may differ.
void attention_pattern(const AttentionHead& head, const float* q, int64_t ldq, const float* key_panels,
                       const AttentionKept& kept, float* pattern, int64_t ld);

struct AttentionGradient {
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;  // added to; shared by the heads of a group (dk, dv)
  int64_t ldq = 0, ldk = 0;                           // dv has dk's
};
struct AttentionInputs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t ldq = 0, ldk = 0;  // v has k's
  const float *out = nullptr, *dout = nullptr;
  int64_t ldo = 0;
};
int64_t attention_backward_scratch(int64_t D);  // floats, for any T and S
void attention_backward(const AttentionHead& head, const AttentionInputs& in, const AttentionKept& kept,
                        const AttentionGradient& gradient, float* scratch);

}  // namespace bary::kernel
