// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/layers.h"

namespace bary {

Linear::Linear(const Scope& s, int64_t in, int64_t out, bool with_bias, bool onto_residual) {
  double bound = 1 / std::sqrt(static_cast<double>(in));
  Init w{Init::Kind::uniform, bound}, b{Init::Kind::uniform, bound};
  if (s.init == InitStyle::gpt2) {
    w = {Init::Kind::normal, onto_residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers)) : 0.02};
    b = {Init::Kind::constant, 0};
  }
  weight = s.add("weight", {out, in}, Role::matrix, w);
  if (with_bias) bias = s.add("bias", {out}, Role::bias, b);
}

Embedding::Embedding(const Scope& s, int64_t rows, int64_t channels) {
  weight =
      s.add("weight", {rows, channels}, Role::embedding, {Init::Kind::normal, s.init == InitStyle::gpt2 ? 0.02 : 1.0});
}

Norm::Norm(const Scope& s, int64_t channels, NormKind kind_, bool with_bias, double eps_)
    : kind(kind_), eps(static_cast<float>(eps_)) {
  weight = s.add("weight", {channels}, Role::norm, {Init::Kind::constant, 1});
  if (kind == NormKind::layer && with_bias) bias = s.add("bias", {channels}, Role::norm, {Init::Kind::constant, 0});
}

}  // namespace bary
