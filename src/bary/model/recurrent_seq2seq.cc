// SPDX-License-Identifier: Apache-2.0
#include "bary/model/recurrent_seq2seq.h"

#include <array>

#include "bary/tensor/additive.h"
#include "bary/tensor/tap.h"

namespace bary {

SourceAttention::SourceAttention(const Scope& s, Attend kind_, int64_t C)
    : kind(kind_), pattern_tap(s.hook + ".hook_pattern") {
  if (kind == Attend::additive) {
    query = Linear(s / "query", C, C, false);
    key = Linear(s / "key", C, C, false);
    v = s.add("v", {C}, Role::bias, s.matrix(C, 1));
  }
  join = Linear(s / "join", 2 * C, C);
}

Tensor SourceAttention::operator()(const Tensor& states, const Memory& memory) const {
  const Tensor& source = memory.states;
  const std::vector<int64_t>& lengths = memory.lengths;
  const int64_t T = states.dim(1), S = source.dim(1);
  Tensor scores = kind == Attend::additive ? additive_scores(query(states), memory.keys, v) : matmul_nt(states, source);
  std::vector<int64_t> end(static_cast<size_t>(scores.rows()), S);
  for (size_t r = 0; r < end.size(); ++r)
    if (!lengths.empty()) end[r] = lengths[r / static_cast<size_t>(T)];
  Tensor pattern = softmax(masked_from(scores, std::move(end)));
  if (const auto edit = Probe::editing(pattern_tap)) pattern = edit(pattern);
  if (const auto look = Probe::looking(pattern_tap)) {
    Tensor shown(Shape{pattern.dim(0), 1, T, S});  // (B,H,T,S), as every pattern
    for (int64_t r = 0; r < pattern.rows(); ++r) std::copy_n(pattern.row(r), S, shown.row(r));
    look(shown);
  }
  const std::array<Tensor, 2> both{states, matmul(pattern, source)};
  return activation(join(concat(both)), Activation::tanh);
}

RecurrentSeq2Seq::RecurrentSeq2Seq(const ModelConfig& c, uint64_t seed)
    : Seq2Seq(c, seed),
      decoder_(root() / "decoder", c, c.vocab_size, c.n_layer, /*first_layer*/ 0),
      encoder_(root() / "encoder", c, c.source_vocab_size, c.n_layer, /*first_layer*/ c.n_layer,
               c.share_embeddings ? decoder_.wte.weight : Tensor()) {
  if (c.attend != Attend::none) attend_.emplace(root() / "decoder" / "attend", c.attend, c.n_embd);
  make_head(decoder_.wte.weight);
}

Memory RecurrentSeq2Seq::encode(const Padded& source, const Pass& pass) const {
  Pass mine = pass;
  mine.cache = nullptr, mine.lengths = source.lengths;
  RecurrentStackOutput out = encoder_(source.ids, source.B(), {}, mine);
  const bool additive = attend_ && attend_->kind == Attend::additive;
  return {out.y, source.lengths, out.last, additive ? attend_->key(out.y) : Tensor()};
}

namespace {

// The memory as each row of a cache reads it: sequence b that of source of[b]
Memory read_by(const Memory& memory, std::span<const int64_t> of) {
  const auto B = static_cast<int64_t>(of.size());
  const int64_t S = memory.states.dim(1), C = memory.states.channels();
  for (int64_t m : of)
    BARY_CHECK(m >= 0 && m < memory.states.dim(0),
               "a cache reads source {} of {}; encode as many as the cache was made for", m, memory.states.dim(0));
  auto read = [&](const Tensor& x) {
    Tensor rows(Shape{B, S, C});
    for (int64_t r = 0; r < B * S; ++r) std::copy_n(x.row(of[static_cast<size_t>(r / S)] * S + r % S), C, rows.row(r));
    return rows;
  };
  Memory out{read(memory.states), {}, {}, memory.keys.defined() ? read(memory.keys) : Tensor()};
  for (int64_t m : of) out.lengths.push_back(memory.lengths[static_cast<size_t>(m)]);
  for (const RecurrentState& s : memory.last.layers) out.last.layers.push_back({rows_of(s.h, of), rows_of(s.c, of)});
  return out;
}

}  // namespace

Tensor RecurrentSeq2Seq::decode(std::span<const int32_t> ids, int64_t B, const Pass& pass) const {
  BARY_CHECK(pass.memory, "decode: there is no source to begin from; encode one and hand it in as pass.memory");
  const bool cached = pass.cache && !pass.cache->source.empty();
  const Memory own = cached ? read_by(*pass.memory, pass.cache->source) : Memory{};
  const Memory& memory = cached ? own : *pass.memory;
  const Tensor states = decoder_(ids, B, memory.last, pass).y;
  return attend_ ? (*attend_)(states, memory) : states;
}

KvCache RecurrentSeq2Seq::make_cache(int64_t B, int64_t capacity) const {
  KvCache cache;
  cache.capacity = capacity;
  for (int64_t b = 0; b < B; ++b) cache.source.push_back(b);
  return cache;
}

}  // namespace bary
