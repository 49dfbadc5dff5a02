// SPDX-License-Identifier: Apache-2.0
#include "bary/model/count.h"

#include <algorithm>

#include "bary/tensor/weight.h"

namespace bary {
namespace {

struct Letters {
  int64_t C, V, P, H, G, D, F;
};
Letters letters(const ModelConfig& c) {
  return {c.n_embd, c.vocab_size, c.positions(), c.n_head, c.heads_kv(), c.head_width(), c.mlp_width()};
}

int64_t norm_size(const ModelConfig& c) { return c.n_embd * (c.norm_kind == NormKind::layer && c.bias ? 2 : 1); }

void add_block(const ModelConfig& c, ParameterCount& out) {
  const Letters l = letters(c);
  auto add = [&](std::string part, std::string formula, int64_t n) {
    if (n == 0) return;
    out.rows.push_back({std::move(part), std::move(formula), n, true});
    out.block += n;
  };
  if (c.mixer == Mixer::attention) {
    const int64_t q = l.H * l.D, kv = 2 * l.G * l.D;
    add("attention: queries, keys, values", c.qkv_bias ? "3 C^2 + 3 C" : "3 C^2",
        (q + kv) * (l.C + (c.qkv_bias ? 1 : 0)));
    if (c.attn_proj) add("attention: output matrix", c.bias ? "C^2 + C" : "C^2", q * l.C + (c.bias ? l.C : 0));
  }
  if (c.mlp != MlpKind::none) {
    const int64_t ups = c.mlp == MlpKind::swiglu ? 2 : 1;
    add("MLP",
        c.mlp == MlpKind::swiglu ? "3 C F"
        : c.bias                 ? "8 C^2 + 5 C"
                                 : "8 C^2",
        ups * l.C * l.F + l.F * l.C + (c.bias ? ups * l.F + l.C : 0));
  }
  if (c.norm != NormPlace::none) {
    const int64_t parts = (c.mixer != Mixer::none ? 1 : 0) + (c.mlp != MlpKind::none ? 1 : 0);
    const int64_t norms = c.norm == NormPlace::parallel ? std::min<int64_t>(parts, 1) : parts;
    add("normalisation", norms == 2 ? "4 C" : "2 C", norms * norm_size(c));
  }
}

}  // namespace

ParameterCount count_parameters(const ModelConfig& c) {
  c.check();
  const Letters l = letters(c);
  ParameterCount out;
  out.rows.push_back({"token embedding", "V C", l.V * l.C, false});
  if (c.pos == Position::learned) out.rows.push_back({"position embedding", "P C", l.P * l.C, false});
  out.embeddings = l.V * l.C + (c.pos == Position::learned ? l.P * l.C : 0);
  if (c.n_layer > 0) add_block(c, out);
  if (c.final_norm()) out.rows.push_back({"final normalisation", "2 C", norm_size(c), false});
  if (!c.tie_embeddings)
    out.rows.push_back({"head", c.head_bias ? "V C + V" : "V C", l.V * l.C + (c.head_bias ? l.V : 0), false});
  for (const CountRow& r : out.rows) out.total += r.per_block ? r.count * c.n_layer : r.count;
  return out;
}

FlopCount count_flops(const ModelConfig& c, int64_t T) {
  const Letters l = letters(c);
  const auto f = [](int64_t x) { return static_cast<double>(x); };
  double matrices = 0, scores = 0, head = f(l.V) * f(l.C);
  if (c.mixer == Mixer::attention) {
    matrices += f(l.C) * f((l.H + 2 * l.G) * l.D) + (c.attn_proj ? f(l.C) * f(l.H * l.D) : 0);
    double keys = 0;  // visited per query, on average
    for (int64_t t = 0; t < T; ++t) {
      int64_t seen = c.mask == Mask::full ? T : t + 1;
      if (c.mask == Mask::window) seen = std::min(seen, c.window);
      keys += f(seen);
    }
    scores = 2 * keys * f(l.H * l.D);  // q k and p v
  }
  if (c.mlp != MlpKind::none) matrices += f(l.C) * f(l.F) * (c.mlp == MlpKind::swiglu ? 3 : 2);
  const double layers = f(c.n_layer), tokens = f(T);
  FlopCount out;
  out.forward = 2 * (tokens * (layers * matrices + head) + layers * scores);
  // backward: two products for each of the forward's (and the first of attention's four is not recomputed)
  out.training = 3 * out.forward;
  return out;
}

namespace {

// Every matrix packed for its two products, where that is done beforehand.
double packed_floats(const ModelConfig& c) {
  const Letters l = letters(c);
  auto copies = [](int64_t n) { return n >= kLargeWeight ? 0.0 : 2.0 * static_cast<double>(n); };
  double block = 0;
  if (c.mixer == Mixer::attention) {
    block += copies((l.H + 2 * l.G) * l.D * l.C);
    if (c.attn_proj) block += copies(l.H * l.D * l.C);
  }
  if (c.mlp != MlpKind::none) block += (c.mlp == MlpKind::swiglu ? 3 : 2) * copies(l.C * l.F);
  return static_cast<double>(c.n_layer) * block + copies(l.V * l.C);
}

}  // namespace

MemoryForecast forecast_memory(const ModelConfig& c, int64_t sequences, int64_t buffers) {
  const Letters l = letters(c);
  const double n = static_cast<double>(count_parameters(c).total) * 4, T = static_cast<double>(c.block_size);
  const double width = static_cast<double>((l.H + 2 * l.G) * l.D + l.H * l.D + 6 * l.C + 2 * l.F);
  const double pattern = c.mixer == Mixer::attention && c.block_size <= 256 ? static_cast<double>(l.H) * T : 0;
  MemoryForecast m;
  m.weights = n;
  m.packed = 4 * packed_floats(c);
  m.optimizer = 2 * n;
  m.gradients = n * static_cast<double>(buffers + 1);
  m.activations = static_cast<double>(sequences) * 4 * T *
                  (static_cast<double>(c.n_layer) * (width + pattern) + 64.0 * static_cast<double>(l.V) / T +
                   4.0 * static_cast<double>(l.C));
  return m;
}

}  // namespace bary
