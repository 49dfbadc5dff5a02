// SPDX-License-Identifier: Apache-2.0
#include "bary/nn/layers.h"

namespace bary {

Init Scope::matrix(int64_t in_width, int64_t out_width, bool onto_residual) const {
  const double n = static_cast<double>(in_width);
  switch (init) {
    case InitStyle::gpt2:
      return {Init::Kind::normal, onto_residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(layers)) : 0.02};
    case InitStyle::xavier:
      return {Init::Kind::uniform, std::sqrt(6.0 / (n + static_cast<double>(out_width)))};
    default:
      return {Init::Kind::uniform, 1 / std::sqrt(n)};
  }
}

Init Scope::vector(int64_t in_width) const {
  if (init != InitStyle::pytorch) return {Init::Kind::constant, 0};
  return {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(in_width))};
}

Init Scope::table(int64_t channels) const {
  if (init == InitStyle::xavier) return {Init::Kind::normal, 1 / std::sqrt(static_cast<double>(channels))};
  return {Init::Kind::normal, init == InitStyle::gpt2 ? 0.02 : 1.0};
}

Linear::Linear(const Scope& s, int64_t in, int64_t out, bool with_bias, bool onto_residual) {
  weight = s.add("weight", {out, in}, Role::matrix, s.matrix(in, out, onto_residual));
  if (with_bias) bias = s.add("bias", {out}, Role::bias, s.vector(in));
}

Embedding::Embedding(const Scope& s, int64_t rows, int64_t channels) {
  weight = s.add("weight", {rows, channels}, Role::embedding, s.table(channels));
}

Norm::Norm(const Scope& s, int64_t channels, NormKind kind_, bool with_bias, double eps_)
    : kind(kind_), eps(static_cast<float>(eps_)) {
  weight = s.add("weight", {channels}, Role::norm, {Init::Kind::constant, 1});
  if (kind == NormKind::layer && with_bias) bias = s.add("bias", {channels}, Role::norm, {Init::Kind::constant, 0});
}

}  // namespace bary
