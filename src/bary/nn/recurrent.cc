// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/recurrent.h"

#include <cmath>

#include "bary/base/error.h"
#include "bary/tensor/ops.h"

namespace bary {

RecurrentLayer::RecurrentLayer(const Scope& s, Cell cell_, int64_t channels, int64_t hidden, const std::string& suffix)
    : cell(cell_) {
  BARY_CHECK(channels > 0 && hidden > 0, "recurrent layer {}: {} channels and {} hidden units; both must be at least 1",
             s.path, channels, hidden);
  const Init init{Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(hidden))};
  const int64_t rows = kernel::gates_of(cell) * hidden;
  weights.weight_ih = s.add("weight_ih" + suffix, {rows, channels}, Role::matrix, init);
  weights.weight_hh = s.add("weight_hh" + suffix, {rows, hidden}, Role::matrix, init);
  weights.bias_ih = s.add("bias_ih" + suffix, {rows}, Role::bias, init);
  weights.bias_hh = s.add("bias_hh" + suffix, {rows}, Role::bias, init);
}

RecurrentOutput RecurrentLayer::operator()(const Tensor& x, const RecurrentState& first, RecurrentOptions o) const {
  o.cell = cell;
  return recurrent(x, weights, first, o);
}

RecurrentStack::RecurrentStack(const Scope& s, const RecurrentStackConfig& c) : config(c) {
  BARY_CHECK(c.n_layer > 0, "recurrent stack {}: {} layers; it needs at least one", s.path, c.n_layer);
  for (int64_t i = 0; i < c.n_layer; ++i)
    layers.emplace_back(s, c.cell, i == 0 ? c.channels : c.hidden, c.hidden, "_l" + std::to_string(i));
}

RecurrentStackOutput RecurrentStack::operator()(const Tensor& x, const RecurrentStates& first, const Pass& pass,
                                                const RecurrentOptions& o) const {
  BARY_CHECK(first.layers.empty() || first.layers.size() == layers.size(),
             "recurrent stack: {} states for {} layers; hand in one a layer, or none for zeros", first.layers.size(),
             layers.size());
  RecurrentStackOutput out{x, {}};
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) {
      const auto below = config.first_layer + static_cast<int64_t>(i) - 1;
      out.y = dropout(out.y, drop_site(config.dropout, pass, below, DropSite::mixer), {pass.sequence, pass.first()});
    }
    const RecurrentOutput r = layers[i](out.y, first.layers.empty() ? RecurrentState() : first.layers[i], o);
    out.y = r.y;
    out.last.layers.push_back(r.last);
  }
  return out;
}

}  // namespace bary
