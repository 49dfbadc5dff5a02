// SPDX-License-Identifier: Apache-2.0
// A model whose every answer is known: two layers of one head without norms or MLPs, written by hand from one-hot
// subspaces [token | position | previous token | output], that completes [A][B] ... [A] with B. Head 0 copies the
// previous token, head 1 looks for the position whose previous token is its own; where there is none it rests at
// token 0, which starts every sequence.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "bary/model/language_model.h"

namespace bary::test {

class GoldModel {
 public:
  static constexpr int64_t V = 12;

  explicit GoldModel(int64_t positions) : P(positions), model_(config(positions), 1) {
    const Parameters& p = model_.parameters();
    std::fill_n(p.values(), p.size(), 0.0f);
    const int64_t prev = V + P, out = 2 * V + P;
    for (int64_t v = 0; v < V; ++v) set("transformer.wte.weight", v, v, 1), set("lm_head.weight", v, out + v, 10);
    for (int64_t t = 0; t < P; ++t) set("transformer.wpe.weight", t, V + t, 1);
    const std::string h0 = "transformer.h.0.attn.", h1 = "transformer.h.1.attn.";
    for (int64_t t = 0; t < P; ++t) {
      set(h0 + "q_proj.weight", t, V + t, 40);
      if (t + 1 < P) set(h0 + "k_proj.weight", t + 1, V + t, 1);  // a key at t looks like t + 1
      set(h1 + "q_proj.weight", V, V + t, 20);                    // half as eager for the first token
    }
    set(h1 + "k_proj.weight", V, 0, 1);
    for (int64_t v = 0; v < V; ++v) {
      set(h0 + "v_proj.weight", v, v, 1), set(h0 + "out_proj.weight", prev + v, v, 1);
      set(h1 + "q_proj.weight", v, v, 40), set(h1 + "k_proj.weight", v, prev + v, 1);
      set(h1 + "v_proj.weight", v, v, 1), set(h1 + "out_proj.weight", out + v, v, 1);
    }
    model_.parameters().changed();
  }

  const LanguageModel& operator*() const { return model_; }
  const LanguageModel* operator->() const { return &model_; }

  // Token 0, then 1 .. n as many times as asked.
  static std::vector<int32_t> repeats(int32_t n, int copies) {
    std::vector<int32_t> ids{0};
    for (int c = 0; c < copies; ++c)
      for (int32_t i = 1; i <= n; ++i) ids.push_back(i);
    return ids;
  }

 private:
  static ModelConfig config(int64_t positions) {
    ModelConfig c;
    c.vocab_size = V, c.block_size = positions, c.n_layer = 2, c.n_head = 1;
    c.n_embd = 3 * V + positions, c.d_head = std::max(positions, V + 1);
    c.mlp = MlpKind::none, c.norm = NormPlace::none, c.scale = false, c.bias = false, c.head_bias = false;
    return c;
  }
  void set(const std::string& name, int64_t row, int64_t column, float value) {
    const Parameter& p = *model_.parameters().find(name);
    model_.parameters().values_of(p)[static_cast<size_t>(row * p.shape[1] + column)] = value;
  }

  int64_t P;
  LanguageModel model_;
};

}  // namespace bary::test
