// SPDX-License-Identifier: Apache-2.0
#include "bary/model/model.h"

#include <algorithm>

namespace bary {

Model::Model(const ModelConfig& config, uint64_t seed) : config_(config) {
  config.check();
  parameters_ = std::make_unique<Parameters>(seed);
}

Scope Model::root() const { return {parameters_.get(), "", "", config_.init, std::max<int64_t>(config_.n_layer, 1)}; }

std::vector<std::string> residual_taps(const ModelConfig& c) {
  std::vector<std::string> names;
  auto stack = [&](const std::string& embed, const std::string& blocks, int64_t n) {
    names.push_back(embed);
    for (int64_t i = 0; i < n && !c.recurrent(); ++i)
      for (const char* end : {".hook_resid_pre", ".hook_resid_mid", ".hook_resid_post"})
        names.push_back(blocks + std::to_string(i) + end);
  };
  if (!c.has_source()) return stack("hook_embed", "blocks.", c.n_layer), names;
  stack("encoder.hook_embed", "encoder.", c.encoder_layers());
  stack("decoder.hook_embed", "decoder.", c.n_layer);
  return names;
}

std::vector<std::string> copy_parameters(const Parameters& from, Parameters& to) {
  std::vector<std::string> left;
  for (const Parameter& p : to.list()) {
    const Parameter* q = from.find(p.name);
    if (!q || q->shape != p.shape) {
      left.push_back(p.name);
      continue;
    }
    auto source = from.values_of(*q);
    std::copy(source.begin(), source.end(), to.values_of(p).begin());
  }
  to.changed();
  return left;
}

}  // namespace bary
