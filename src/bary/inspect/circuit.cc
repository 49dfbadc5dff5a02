// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/circuit.h"

#include <algorithm>

#include "bary/base/error.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/tap.h"

namespace bary {
namespace {

// The parameters of one layer's attention as constants, by the names they have in a checkpoint
class Layer {
 public:
  Layer(const char* op, const LanguageModel& model, int64_t layer) : model_(model), layer_(layer) {
    const ModelConfig& c = model.config();
    BARY_CHECK(c.mixer == Mixer::attention && !c.recurrent(),
               "{}: this model (arch={}) does not mix positions by attention; use a transformer with mixer=attention",
               op, arch_name(c));
    BARY_CHECK(layer >= 0 && layer < c.n_layer, "{}: there is no layer {}; the model has layers 0 to {}", op, layer,
               c.n_layer - 1);
  }

  Tensor parameter(const std::string& name) const {  // undefined if the model has none of this name
    const Parameter* p = model_.parameters().find(name);
    if (!p) return {};
    return Tensor::from(p->shape, model_.parameters().values_of(*p));
  }
  Tensor own(const std::string& name) const {
    return parameter("transformer.h." + std::to_string(layer_) + "." + name);
  }
  Tensor projected(const Tensor& x, const std::string& name) const {
    return linear(x, own("attn." + name + ".weight"), own("attn." + name + ".bias"));
  }

  // What the layer's projections read: the residual stream, normalised where the model normalises before them
  Tensor input(std::span<const int32_t> ids, int64_t B) const {
    Tensor x;
    Probe probe;
    probe.look("blocks." + std::to_string(layer_) + ".hook_resid_pre", [&](const Tensor& seen) { x = seen; });
    model_.hidden(ids, B);
    const ModelConfig& c = model_.config();
    if (c.norm != NormPlace::pre && c.norm != NormPlace::parallel) return x;
    return normalised(x, own("ln_1.weight"), own("ln_1.bias"));
  }

 private:
  Tensor normalised(const Tensor& x, const Tensor& gain, const Tensor& bias) const {
    const ModelConfig& c = model_.config();
    const auto eps = static_cast<float>(c.norm_eps);
    return c.norm_kind == NormKind::layer ? layer_norm(x, gain, bias, eps) : rms_norm(x, gain, eps);
  }

  const LanguageModel& model_;
  int64_t layer_;
};

// Key and value heads may be fewer: each serves H / Hkv queries' heads in turn
Tensor head_of(const Tensor& x, int64_t head, const ModelConfig& c, int64_t heads) {
  return columns(x, head / (c.n_head / heads) * c.head_width(), c.head_width());
}

// The columns of W_O (C, H D) that read head h, as (C, D); without an output matrix its place in the identity
Tensor output_matrix(const Tensor& w, const ModelConfig& c, int64_t head) {
  const int64_t D = c.head_width();
  if (w.defined()) return columns(w, head * D, D);
  Tensor place = Tensor::zeros({c.n_embd, D});
  for (int64_t d = 0; d < D; ++d) place.row(head * D + d)[d] = 1;
  return place;
}

// In place: a gain for each channel, after LayerNorm's centring
void gain_rows(const Tensor& x, const Tensor& gain, bool centred) {
  if (!gain.defined()) return;
  for (int64_t r = 0; r < x.rows(); ++r) {
    float* row = x.row(r);
    double mean = 0;
    for (int64_t c = 0; c < x.channels(); ++c) mean += row[c];
    mean = centred ? mean / static_cast<double>(x.channels()) : 0.0;
    for (int64_t c = 0; c < x.channels(); ++c) row[c] = (row[c] - static_cast<float>(mean)) * gain.data()[c];
  }
}

double share_of_rise(std::span<const float> logits, int32_t token) {
  double mean = 0, rise = 0;
  for (float a : logits) mean += static_cast<double>(a);
  mean /= static_cast<double>(logits.size());
  for (float a : logits) rise += std::max(0.0, static_cast<double>(a) - mean);
  const double own = std::max(0.0, static_cast<double>(logits[static_cast<size_t>(token)]) - mean);
  return rise > 0 ? own / rise : 0.0;  // a head that writes nothing copies nothing
}

}  // namespace

Tensor attention_scores(const LanguageModel& model, int64_t layer, std::span<const int32_t> ids, int64_t B) {
  const ModelConfig& c = model.config();
  const Layer weights("attention_scores", model, layer);
  BARY_CHECK(c.pos != Position::rotary && c.pos != Position::alibi,
             "attention_scores: with rotary positions or ALiBi the scores are more than a product of queries and keys; "
             "use a model with learned, sinusoidal or no positions");
  const Tensor x = weights.input(ids, B), q = weights.projected(x, "q_proj"), k = weights.projected(x, "k_proj");
  const float scale = c.scale ? 1 / std::sqrt(static_cast<float>(c.head_width())) : 1.0f;
  const int64_t T = x.dim(1);
  Tensor all(Shape{B, c.n_head, T, T});
  for (int64_t h = 0; h < c.n_head; ++h) {
    const Tensor s = matmul_nt(head_of(q, h, c, c.n_head), head_of(k, h, c, c.heads_kv())) * scale;
    for (int64_t r = 0; r < B * T; ++r) std::copy_n(s.row(r), T, all.row((r / T * c.n_head + h) * T + r % T));
  }
  return all;
}

std::vector<double> copying_scores(const LanguageModel& model, int64_t layer, std::span<const int32_t> ids, int64_t B) {
  const ModelConfig& c = model.config();
  const Layer weights("copying_scores", model, layer);
  const Tensor v = weights.projected(weights.input(ids, B), "v_proj");
  const Tensor w_o = weights.own("attn.out_proj.weight");
  const Tensor unembed = weights.parameter(c.tie_embeddings ? "transformer.wte.weight" : "lm_head.weight");
  const Tensor gain = weights.parameter("transformer.ln_f.weight");
  std::vector<double> scores;
  for (int64_t h = 0; h < c.n_head; ++h) {
    const Tensor written = linear(head_of(v, h, c, c.heads_kv()), output_matrix(w_o, c, h), {});
    gain_rows(written, gain, c.norm_kind == NormKind::layer);
    const Tensor logits = linear(written, unembed, {});
    double sum = 0;
    for (int64_t r = 0; r < logits.rows(); ++r)
      sum += share_of_rise({logits.row(r), static_cast<size_t>(logits.channels())}, ids[static_cast<size_t>(r)]);
    scores.push_back(sum / static_cast<double>(logits.rows()));
  }
  return scores;
}

}  // namespace bary
