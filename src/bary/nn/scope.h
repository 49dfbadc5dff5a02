// SPDX-License-Identifier: Apache-2.0
// Names are paths, given once: a Scope creates a parameter under its path (Hugging Face's style in files:
// "transformer.h.0.mlp.c_fc.weight") and names the taps beside it (TransformerLens's style:
// "blocks.0.attn.hook_pattern").
#pragma once
#include <string>

#include "bary/tensor/parameters.h"

namespace bary {

enum class InitStyle {
  pytorch,  // Linear uniform in +-1/sqrt(fan_in), biases too; Embedding N(0,1): PyTorch's defaults
  gpt2,     // N(0, 0.02), projections onto the residual path N(0, 0.02 / sqrt(2 n_layer)), biases 0
  xavier,  // uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio 2010), biases 0; Embedding N(0, 1/C), so that a table
           // scaled by sqrt(C) gives rows of unit variance (Vaswani et al. 2017, section 3.4)
};

struct Scope {
  Parameters* parameters;
  std::string path, hook;
  InitStyle init = InitStyle::pytorch;
  int64_t layers = 1;  // for the residual projections of InitStyle::gpt2

  Init matrix(int64_t in_width, int64_t out_width, bool onto_residual = false) const;
  Init vector(int64_t in_width) const;  // biases
  Init table(int64_t channels) const;

  Scope operator/(const std::string& name) const { return in(name, name); }
  Scope in(const std::string& file_name, const std::string& hook_name) const {
    Scope s = *this;
    s.path = path.empty() ? file_name : path + "." + file_name;
    s.hook = hook.empty() ? hook_name : hook + "." + hook_name;
    return s;
  }
  Tensor add(const std::string& name, Shape shape, Role role, Init how) const {
    return parameters->add(path.empty() ? name : path + "." + name, shape, role, how);
  }
};

}  // namespace bary
