// SPDX-License-Identifier: Apache-2.0
#include "bary/model/count.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "bary/tensor/weight.h"

namespace bary {
namespace {

struct Letters {
  int64_t C, V, P, H, G, D, F;
};
Letters letters(const ModelConfig& c) {
  return {c.n_embd, c.vocab_size, c.positions(), c.n_head, c.heads_kv(), c.head_width(), c.mlp_width()};
}

struct Counted {
  std::string formula;
  int64_t count;
};
// So many norms, each of a vector or two
Counted norms_of(const ModelConfig& c, int64_t norms) {
  const int64_t vectors = norms * (c.norm_kind == NormKind::layer && c.bias ? 2 : 1);
  return {vectors == 1 ? "C" : fmt::format("{} C", vectors), vectors * c.n_embd};
}

// One side of a model: how many blocks, and whether they read another text
struct Side {
  std::string name;        // "", "source ", "target "
  const char* vocabulary;  // its letter
  int64_t vocab_size, layers;
  bool cross;
};

void add_attention(const ModelConfig& c, const std::string& name,
                   const std::function<void(std::string, std::string, int64_t)>& add) {
  const Letters l = letters(c);
  const int64_t q = l.H * l.D, kv = 2 * l.G * l.D;
  // the text's squares where the heads make up C, and else what they are made of
  const bool square = q == l.C, all_heads = l.G == l.H;
  const std::string rows = !all_heads ? "(H + 2 G) D" : square ? "3 C" : "3 H D";
  const std::string matrices = !all_heads ? "C (H + 2 G) D" : square ? "3 C^2" : "3 C H D";
  add(name + ": queries, keys, values", c.qkv_bias ? matrices + " + " + rows : matrices,
      (q + kv) * (l.C + (c.qkv_bias ? 1 : 0)));
  if (!c.attn_proj) return;
  const std::string output = square ? "C^2" : "C H D";
  add(name + ": output matrix", c.bias ? output + " + C" : output, q * l.C + (c.bias ? l.C : 0));
}

std::string mlp_formula(const ModelConfig& c) {
  if (c.mlp == MlpKind::swiglu) return c.bias ? "3 C F + 2 F + C" : "3 C F";
  if (c.mlp_ratio == 4) return c.bias ? "8 C^2 + 5 C" : "8 C^2";  // as the text counts
  return c.bias ? "2 C F + F + C" : "2 C F";
}

void add_blocks(const ModelConfig& c, const Side& side, ParameterCount& out) {
  const Letters l = letters(c);
  out.block = 0;
  auto add = [&](std::string part, std::string formula, int64_t n) {
    if (n == 0) return;
    out.rows.push_back({std::move(part), std::move(formula), n, side.name + "blocks", side.layers});
    out.block += n;
  };
  if (c.mixer == Mixer::attention) add_attention(c, "attention", add);
  if (side.cross) add_attention(c, "cross-attention", add);
  if (c.mlp != MlpKind::none) {
    const int64_t ups = c.mlp == MlpKind::swiglu ? 2 : 1;
    add("MLP", mlp_formula(c), ups * l.C * l.F + l.F * l.C + (c.bias ? ups * l.F + l.C : 0));
  }
  if (c.norm != NormPlace::none) {
    const int64_t parts = (c.mixer != Mixer::none ? 1 : 0) + (side.cross ? 1 : 0) + (c.mlp != MlpKind::none ? 1 : 0);
    const int64_t norms = c.norm == NormPlace::parallel ? std::min<int64_t>(parts, 1) : parts;
    const Counted all = norms_of(c, norms);
    add("normalisation", all.formula, all.count);
  }
}

// Layers of a recurrent model, each of G gates with two matrices and two biases
void add_layers(const ModelConfig& c, const Side& side, ParameterCount& out) {
  const int64_t C = c.n_embd, gates = c.arch == Arch::lstm ? 4 : c.arch == Arch::gru ? 3 : 1;
  out.block = gates * (2 * C * C + 2 * C);
  out.rows.push_back(
      {"gates: input and state", fmt::format("{} (2 C^2 + 2 C)", gates), out.block, side.name + "layers", side.layers});
}

void add_side(const ModelConfig& c, const Side& side, ParameterCount& out) {
  const Letters l = letters(c);
  auto table = [&](const char* name, const std::string& formula, int64_t n) {
    out.rows.push_back({side.name + name, formula, n, "", 1});
    out.embeddings += n;
  };
  if (!c.share_embeddings || side.cross)
    table("token embedding", std::string(side.vocabulary) + " C", side.vocab_size * l.C);
  if (c.recurrent()) return add_layers(c, side, out);
  if (c.pos == Position::learned) table("position embedding", "P C", l.P * l.C);
  if (side.layers > 0) add_blocks(c, side, out);
  if (!c.final_norm()) return;
  const Counted last = norms_of(c, 1);
  out.rows.push_back({side.name + "final normalisation", last.formula, last.count, "", 1});
}

}  // namespace

ParameterCount count_parameters(const ModelConfig& c) {
  c.check();
  const Letters l = letters(c);
  ParameterCount out;
  if (c.has_source()) add_side(c, {"source ", "S", c.source_vocab_size, c.encoder_layers(), false}, out);
  add_side(c, {c.has_source() ? "target " : "", "V", c.vocab_size, c.n_layer, c.has_source()}, out);
  if (c.attend == Attend::additive) out.rows.push_back({"additive scores", "2 C^2 + C", 2 * l.C * l.C + l.C, "", 1});
  if (c.attend != Attend::none)
    out.rows.push_back({"state and context joined", "2 C^2 + C", 2 * l.C * l.C + l.C, "", 1});
  if (!c.tie_embeddings)
    out.rows.push_back({"head", c.head_bias ? "V C + V" : "V C", l.V * l.C + (c.head_bias ? l.V : 0), "", 1});
  for (const CountRow& r : out.rows) out.total += r.count * r.times;
  return out;
}

namespace {

// Multiply-adds of one block over T rows whose queries see so many keys in all
double block_work(const ModelConfig& c, double T, double keys, bool cross, double S) {
  const Letters l = letters(c);
  const auto f = [](int64_t x) { return static_cast<double>(x); };
  double work = 0;
  if (c.mixer == Mixer::attention)
    work += T * (f(l.C) * f((l.H + 2 * l.G) * l.D) + (c.attn_proj ? f(l.C) * f(l.H * l.D) : 0)) +
            2 * keys * f(l.H * l.D);  // q k and p v
  if (cross)
    work +=
        T * f(l.C) * f(l.H * l.D) * (c.attn_proj ? 2 : 1) + S * f(l.C) * f(2 * l.G * l.D) + 2 * T * S * f(l.H * l.D);
  if (c.mlp != MlpKind::none) work += T * f(l.C) * f(l.F) * (c.mlp == MlpKind::swiglu ? 3 : 2);
  return work;
}

double recurrent_work(const ModelConfig& c, double T) {
  const double C = static_cast<double>(c.n_embd), gates = c.arch == Arch::lstm ? 4 : c.arch == Arch::gru ? 3 : 1;
  return T * gates * 2 * C * C;
}

}  // namespace

FlopCount count_flops(const ModelConfig& c, int64_t T) {
  const double tokens = static_cast<double>(T), C = static_cast<double>(c.n_embd);
  double keys = 0;  // visited by all queries of the target's side
  for (int64_t t = 0; t < T; ++t) {
    int64_t seen = c.seen() == Mask::full ? T : t + 1;
    if (c.seen() == Mask::window) seen = std::min(seen, c.window);
    keys += static_cast<double>(seen);
  }
  const double layers = static_cast<double>(c.n_layer), encoders = static_cast<double>(c.encoder_layers());
  double work = tokens * static_cast<double>(c.vocab_size) * C;
  if (c.recurrent()) {
    work += (layers + (c.has_source() ? encoders : 0)) * recurrent_work(c, tokens);
    if (c.attend != Attend::none) work += tokens * (2 * C * C + 2 * tokens * C);
    if (c.attend == Attend::additive) work += 2 * tokens * C * C;
  } else {
    work += layers * block_work(c, tokens, keys, c.has_source(), tokens);
    if (c.has_source()) work += encoders * block_work(c, tokens, tokens * tokens, false, 0);
  }
  FlopCount out;
  out.forward = 2 * work;
  // backward: two products for each of the forward's (and the first of attention's four is not recomputed)
  out.training = 3 * out.forward;
  return out;
}

namespace {

// Every matrix packed for its two products, where that is done beforehand.
double packed_floats(const ModelConfig& c) {
  const Letters l = letters(c);
  if (c.recurrent()) return 0;
  auto copies = [](int64_t n) { return n >= kLargeWeight ? 0.0 : 2.0 * static_cast<double>(n); };
  double block = 0;
  if (c.mixer == Mixer::attention) {
    block += copies((l.H + 2 * l.G) * l.D * l.C);
    if (c.attn_proj) block += copies(l.H * l.D * l.C);
  }
  if (c.mlp != MlpKind::none) block += (c.mlp == MlpKind::swiglu ? 3 : 2) * copies(l.C * l.F);
  const int64_t blocks = c.n_layer + (c.has_source() ? c.encoder_layers() : 0);
  return static_cast<double>(blocks) * block + copies(l.V * l.C);
}

}  // namespace

// Floats of activations that a position leaves for the backward pass, in all layers
static double kept_of_position(const ModelConfig& c) {
  const Letters l = letters(c);
  const double T = static_cast<double>(c.block_size);
  const double heads = static_cast<double>((l.H + 2 * l.G) * l.D + l.H * l.D);
  const double pattern = c.mixer == Mixer::attention && c.block_size <= 256 ? static_cast<double>(l.H) * T : 0;
  const double block = heads + 6.0 * static_cast<double>(l.C) + 2.0 * static_cast<double>(l.F) + pattern;
  const double cross = heads + 2.0 * static_cast<double>(l.C) + pattern;
  const double gates = c.arch == Arch::lstm ? 4 : c.arch == Arch::gru ? 3 : 1;
  double kept = static_cast<double>(c.n_layer) * block;  // of a position, all layers
  if (c.arch == Arch::encoder_decoder)
    kept += static_cast<double>(c.n_layer) * cross + static_cast<double>(c.encoder_layers()) * block;
  if (c.recurrent()) {  // gates before and after, state and cell, input
    const double layers = static_cast<double>(c.n_layer + (c.has_source() ? c.encoder_layers() : 0));
    kept = (layers * (2 * gates + 3) + (c.attend == Attend::none ? 0 : 4)) * static_cast<double>(l.C);
  }
  return kept;
}

MemoryForecast forecast_memory(const ModelConfig& c, int64_t sequences, int64_t buffers) {
  const Letters l = letters(c);
  const double n = static_cast<double>(count_parameters(c).total) * 4, T = static_cast<double>(c.block_size);
  MemoryForecast m;
  m.weights = n;
  m.packed = 4 * packed_floats(c);
  m.optimizer = 2 * n;
  m.gradients = n * static_cast<double>(buffers + 1);
  m.activations = static_cast<double>(sequences) * 4 * T *
                  (kept_of_position(c) + 64.0 * static_cast<double>(l.V) / T + 4.0 * static_cast<double>(l.C));
  return m;
}

}  // namespace bary
