// SPDX-License-Identifier: Apache-2.0
#include "bary/inspect/cross.h"

#include <string>

#include "bary/tensor/tap.h"

namespace bary {

std::vector<Tensor> cross_patterns(const Seq2Seq& model, const PairBatch& pair) {
  const ModelConfig& c = model.config();
  BARY_CHECK(c.arch == Arch::encoder_decoder || c.attend != Attend::none,
             "attention to the source: this model (arch={}) has none; train with --attend additive or dot",
             arch_name(c));
  std::vector<Tensor> maps(static_cast<size_t>(c.recurrent() ? 1 : c.n_layer));
  Probe probe;
  for (size_t i = 0; i < maps.size(); ++i) {
    const std::string name = c.recurrent() ? "decoder.attend" : "decoder." + std::to_string(i) + ".cross_attn";
    probe.look(name + ".hook_pattern", [&maps, i](const Tensor& p) { maps[i] = p; });
  }
  model.logits(pair);
  return maps;
}

Tensor mean_over_heads(const Tensor& pattern) {
  const int64_t H = pattern.dim(1), T = pattern.dim(2), S = pattern.dim(3);
  Tensor mean = Tensor::zeros({T, S});
  for (int64_t h = 0; h < H; ++h)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s) mean.row(t)[s] += pattern.row(h * T + t)[s] / static_cast<float>(H);
  return mean;
}

double mass_on(const Tensor& pattern, int64_t head, int64_t rows, int64_t (*column_of)(int64_t t, int64_t rows)) {
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t s = column_of(t, rows);
    if (s >= 0 && s < pattern.dim(3)) sum += pattern.row(head * pattern.dim(2) + t)[s];
  }
  return rows ? sum / static_cast<double>(rows) : 0;
}

}  // namespace bary
