// SPDX-License-Identifier: Apache-2.0
// AdamW with decoupled weight decay (Loshchilov and Hutter 2019) over a model's flat parameters, PyTorch's defaults and
// order of operations; gradient clipping by the global norm as in torch.nn.utils.clip_grad_norm_.
#pragma once
#include <string>
#include <vector>

#include "bary/tensor/buffer.h"
#include "bary/tensor/parameters.h"

namespace bary {

enum class DecayGroup {
  all,       // PyTorch's default: every parameter
  matrices,  // matrices and embeddings only: nanoGPT's (>= 2-D)
  linear,    // matrices of linear layers only
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  DecayGroup decay = DecayGroup::all;
  double grad_clip = 0;  // largest global norm; 0 = off
};
bool decays(DecayGroup group, Role role);

class AdamW {
 public:
  AdamW(Parameters& parameters, const AdamWOptions& options);

  struct Report {
    double norm = 0;     // of the mean gradient, before clipping
    bool finite = true;  // if not, nothing was changed
  };
  // One update from the sum of gradients over `tokens` targets. Update numbers start at 1 for the first.
  Report step(const float* gradient_sum, int64_t tokens, double learning_rate);

  int64_t updates() const { return updates_; }
  float* moment1() { return m_.data(); }
  float* moment2() { return v_.data(); }
  void restore(int64_t updates) { updates_ = updates; }  // after the moments were read

 private:
  struct Piece {  // of one parameter, at most a chunk
    int64_t offset, n;
    bool decays;
  };
  Parameters& parameters_;
  AdamWOptions options_;
  Buffer m_, v_;
  std::vector<Piece> pieces_;
  int64_t updates_ = 0;
};

// The first parameter (in order of creation) with a value that is not finite, or "" if all are.
std::string first_not_finite(const Parameters& layout, const float* values);

}  // namespace bary
