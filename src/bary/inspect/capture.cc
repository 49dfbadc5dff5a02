// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/capture.h"

#include <algorithm>

#include "bary/base/error.h"

namespace bary {
namespace {

std::string pattern_tap(int64_t layer) { return "blocks." + std::to_string(layer) + ".attn.hook_pattern"; }

void check_attends(const char* op, const LanguageModel& model) {
  const ModelConfig& c = model.config();
  BARY_CHECK(c.mixer == Mixer::attention && !c.recurrent(),
             "{}: this model (arch={}) does not mix positions by attention, so it has no pattern; use a transformer "
             "with mixer=attention",
             op, arch_name(c));
}

}  // namespace

std::vector<Tensor> attention_patterns(const LanguageModel& model, std::span<const int32_t> ids, int64_t B) {
  check_attends("attention_patterns", model);
  std::vector<Tensor> layers(static_cast<size_t>(model.config().n_layer));
  Probe probe;
  for (int64_t l = 0; l < std::ssize(layers); ++l)
    probe.look(pattern_tap(l), [&layers, l](const Tensor& a) { layers[static_cast<size_t>(l)] = a; });
  model.hidden(ids, B);
  return layers;
}

void switch_off(Probe& probe, const LanguageModel& model, int64_t layer, std::span<const int64_t> heads) {
  check_attends("switch_off", model);
  const ModelConfig& c = model.config();
  BARY_CHECK(layer >= 0 && layer < c.n_layer, "switch_off: there is no layer {}; the model has layers 0 to {}", layer,
             c.n_layer - 1);
  std::vector<float> kept(static_cast<size_t>(c.n_head), 1.0f);
  for (int64_t h : heads) {
    BARY_CHECK(h >= 0 && h < c.n_head, "switch_off: there is no head {}; a layer has heads 0 to {}", h, c.n_head - 1);
    kept[static_cast<size_t>(h)] = 0;
  }
  if (heads.empty()) return;
  probe.edit(pattern_tap(layer), [kept](const Tensor& pattern) {  // (B H,T,S)
    Tensor factor(pattern.shape());
    const int64_t T = pattern.dim(1), H = std::ssize(kept);
    for (int64_t r = 0; r < factor.rows(); ++r)
      std::fill_n(factor.row(r), factor.channels(), kept[static_cast<size_t>(r / T % H)]);
    return pattern * factor;
  });
}

}  // namespace bary
