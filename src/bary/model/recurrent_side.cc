// SPDX-License-Identifier: Apache-2.0
#include "bary/model/recurrent_side.h"

#include "bary/base/parallel.h"
#include "bary/tensor/tap.h"

namespace bary {

Cell cell_of(const ModelConfig& c) {
  BARY_CHECK(c.recurrent(), "arch={} has no cells; choose rnn, lstm or gru", arch_name(c));
  return c.arch == Arch::rnn ? Cell::rnn : c.arch == Arch::lstm ? Cell::lstm : Cell::gru;
}

RecurrentSide::RecurrentSide(const Scope& s, const ModelConfig& c, int64_t vocab_size, int64_t n_layer,
                             int64_t first_layer, const Tensor& tokens)
    : stack(s / "rnn", {cell_of(c), c.n_embd, c.n_embd, n_layer, c.dropout, first_layer}),
      dropout(c.dropout),
      hook(s.hook.empty() ? "hook_embed" : s.hook + ".hook_embed") {
  if (tokens.defined()) {
    wte.weight = tokens;
  } else {
    wte = Embedding(s.in("wte", "embed"), vocab_size, c.n_embd);
  }
}

RecurrentStackOutput RecurrentSide::operator()(std::span<const int32_t> ids, int64_t B, const RecurrentStates& first,
                                               const Pass& pass) const {
  FlushDenormals flush;  // as in every worker
  const auto site = drop_site(dropout, pass, stack.config.first_layer, DropSite::embedding);
  const Tensor x = tap(hook, bary::dropout(embedding(ids, B, wte.weight), site, {pass.sequence, pass.first()}));
  const bool going_on = pass.cache && !pass.cache->recurrent.layers.empty();
  RecurrentOptions o;
  o.lengths = pass.lengths, o.truncate = pass.truncate;
  RecurrentStackOutput out = stack(x, going_on ? pass.cache->recurrent : first, pass, o);
  if (pass.cache) pass.cache->recurrent = out.last, pass.cache->length += x.dim(1);
  return out;
}

}  // namespace bary
