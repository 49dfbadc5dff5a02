// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/attention_sides.h"

#include <algorithm>
#include <cmath>

namespace bary {
namespace {

void check_options(const char* op, const AttentionSides& s, const AttentionOptions& o) {
  BARY_CHECK(o.dropout.p >= 0 && o.dropout.p < 1, "{}: dropout probability {}; it must be at least 0 and below 1", op,
             o.dropout.p);
  BARY_CHECK(o.mask != Mask::window || o.window > 0, "{}: a window of {}; it must be at least 1", op, o.window);
  BARY_CHECK(o.prefix.empty() || (o.mask == Mask::causal && static_cast<int64_t>(o.prefix.size()) == s.B),
             "{}: {} prefixes for {} sequences; give one each, with a causal mask", op, o.prefix.size(), s.B);
  BARY_CHECK(o.lengths.empty() || o.mask == Mask::full,
             "{}: lengths mark padding where every key is seen; a causal mask hides what comes after anyway", op);
}

void check_lengths(const char* op, const AttentionSides& s) {
  for (int64_t n : s.lengths)
    BARY_CHECK(n >= 1 && n <= s.S, "{}: a length of {}; there are {} positions, and one at least must be seen", op, n,
               s.S);
}

void check_table(const char* op, const AttentionSides& s, const AttentionOptions& o) {
  if (!o.rotary) return;
  BARY_CHECK(o.rotary->D == s.D, "{}: the heads have {} channels and the table of rotary positions {}; make one for {}",
             op, s.D, o.rotary->D, s.D);
  const int64_t end = s.T + (o.cache ? o.cache->length : 0);
  BARY_CHECK(end <= o.rotary->positions,
             "rotary positions: position {} asked for, the table ends at {}; make a longer table", end - 1,
             o.rotary->positions - 1);
}

// Weights over no keys at all add up to nothing.
void check_keys(const char* op, const AttentionSides& s) {
  BARY_CHECK(s.S > 0, "{}: the keys are of 0 positions; give it a source of one at least", op);
}

void check_heads(const char* op, const AttentionSides& s) {
  BARY_CHECK(s.H > 0 && s.G > 0 && s.H % s.G == 0,
             "{}: {} heads over {} key heads; heads must be a multiple of key heads", op, s.H, s.G);
}

AttentionSides cross_of(const char* op, const Tensor& q, const AttentionOptions& o) {
  BARY_CHECK(q.shape().rank() == 3, "{}: the queries are {}, expected (B,T,H D)", op, q.shape().str());
  AttentionSides s;
  s.B = q.dim(0), s.T = q.dim(1), s.H = o.heads, s.G = o.kv_heads ? o.kv_heads : o.heads;
  s.q = q, s.cross = true;
  check_heads(op, s);
  BARY_CHECK(q.channels() % s.H == 0, "{}: {} channels do not divide into {} heads", op, q.channels(), s.H);
  s.D = q.channels() / s.H;
  BARY_CHECK(o.mask == Mask::full && !o.rotary && !o.alibi && !o.cache,
             "{}: positions of two texts have no order; it takes a full mask, no rotary or ALiBi, and a memory for "
             "decoding",
             op);
  check_options(op, s, o);
  return s;
}

}  // namespace

float AttentionSides::scale(const AttentionOptions& o) const {
  return o.scale ? 1.0f / std::sqrt(static_cast<float>(D)) : 1.0f;
}

kernel::AttentionHead AttentionSides::head(const AttentionOptions& o, int64_t b, int64_t h, int64_t first) const {
  const auto i = static_cast<size_t>(b);
  kernel::AttentionHead a;
  a.S = lengths.empty() ? first + S : lengths[i];
  a.T = cross || lengths.empty() ? T : std::min(T, a.S);
  a.D = D;
  a.first = first;
  a.causal = o.mask != Mask::full;
  a.window = o.mask == Mask::window ? o.window : 0;
  a.prefix = o.prefix.empty() ? 0 : o.prefix[i];
  a.scale = scale(o);
  a.slope = o.alibi ? alibi_slope(h, H) : 0;
  a.dropout = o.dropout;
  a.sequence = o.rows.sequence + static_cast<uint64_t>(b);
  a.head = static_cast<uint32_t>(h);
  return a;
}

AttentionSides self_sides(const char* op, const Tensor& qkv, const AttentionOptions& o) {
  BARY_CHECK(qkv.shape().rank() == 3, "{}: qkv is {}, expected (B,T,(H+2Hkv)D)", op, qkv.shape().str());
  AttentionSides s;
  s.B = qkv.dim(0), s.T = s.S = qkv.dim(1), s.H = o.heads, s.G = o.kv_heads ? o.kv_heads : o.heads;
  check_heads(op, s);
  BARY_CHECK(qkv.dim(2) % (s.H + 2 * s.G) == 0, "{}: {} channels do not divide into {} query and 2 x {} key heads", op,
             qkv.dim(2), s.H, s.G);
  s.D = qkv.dim(2) / (s.H + 2 * s.G);
  s.q = s.kv = qkv, s.k_column = s.H * s.D, s.v_column = (s.H + s.G) * s.D, s.lengths = o.lengths;
  BARY_CHECK(o.lengths.empty() || static_cast<int64_t>(o.lengths.size()) == s.B, "{}: {} lengths for {} sequences", op,
             o.lengths.size(), s.B);
  check_options(op, s, o);
  check_table(op, s, o);
  check_lengths(op, s);
  return s;
}

AttentionSides cross_sides(const char* op, const Tensor& q, const Tensor& kv, const AttentionOptions& o) {
  AttentionSides s = cross_of(op, q, o);
  BARY_CHECK(kv.shape().rank() == 3 && kv.dim(0) == s.B && kv.channels() == 2 * s.G * s.D,
             "{}: keys and values are {}, the queries {}; expected ({},S,{})", op, kv.shape().str(), q.shape().str(),
             s.B, 2 * s.G * s.D);
  s.kv = kv, s.S = kv.dim(1), s.v_column = s.G * s.D, s.lengths = o.lengths;
  BARY_CHECK(o.lengths.empty() || static_cast<int64_t>(o.lengths.size()) == s.B, "{}: {} lengths for {} sources", op,
             o.lengths.size(), s.B);
  check_keys(op, s);
  check_lengths(op, s);
  return s;
}

AttentionSides memory_sides(const char* op, const Tensor& q, const KeyValues& memory, const std::vector<int64_t>& of,
                            const AttentionOptions& o) {
  AttentionSides s = cross_of(op, q, o);
  BARY_CHECK(memory.heads == s.G && memory.D == s.D && static_cast<int64_t>(of.size()) == s.B,
             "{}: the memory has {} heads of {} and {} sequences name a source, the call has {} of {} for {}", op,
             memory.heads, memory.D, of.size(), s.G, s.D, s.B);
  BARY_CHECK(o.lengths.empty() || static_cast<int64_t>(o.lengths.size()) == memory.B, "{}: {} lengths for {} sources",
             op, o.lengths.size(), memory.B);
  s.S = memory.length;
  check_keys(op, s);
  for (int64_t m : of) {
    BARY_CHECK(m >= 0 && m < memory.B, "{}: source {} of {}", op, m, memory.B);
    if (!o.lengths.empty()) s.lengths.push_back(o.lengths[static_cast<size_t>(m)]);
  }
  check_lengths(op, s);
  return s;
}

}  // namespace bary
