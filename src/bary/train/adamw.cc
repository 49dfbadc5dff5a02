// SPDX-License-Identifier: Apache-2.0
#include "bary/train/adamw.h"

#include <algorithm>
#include <cmath>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"
#include "bary/kernel/optimizer.h"

namespace bary {

bool decays(DecayGroup group, Role role) {
  switch (group) {
    case DecayGroup::all:
      return true;
    case DecayGroup::matrices:
      return role == Role::matrix || role == Role::embedding;
    case DecayGroup::linear:
      return role == Role::matrix;
  }
  return true;
}

AdamW::AdamW(Parameters& parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options), m_(parameters.size()), v_(parameters.size()) {
  std::fill_n(m_.data(), m_.size(), 0.0f);
  std::fill_n(v_.data(), v_.size(), 0.0f);
  for (const Parameter& p : parameters.list()) {
    for (int64_t i = 0; i < p.shape.volume(); i += kernel::kOptimizerChunk) {
      pieces_.push_back(
          {p.offset + i, std::min(kernel::kOptimizerChunk, p.shape.volume() - i), decays(options.decay, p.role)});
    }
  }
}

AdamW::Report AdamW::step(const float* gradient_sum, int64_t tokens, double learning_rate) {
  Report report;
  if (tokens == 0) return report;  // nothing was counted: nothing to learn from
  const auto count = static_cast<int64_t>(pieces_.size());
  std::vector<double> squares(pieces_.size());
  parallel_for(count, 8, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const Piece& p = pieces_[static_cast<size_t>(i)];
      squares[static_cast<size_t>(i)] = kernel::squared_norm(gradient_sum + p.offset, p.n);
    }
  });
  double square = 0;
  for (double s : squares) square += s;
  report.norm = std::sqrt(square) / static_cast<double>(tokens);
  report.finite = std::isfinite(report.norm);
  if (!report.finite) return report;

  ++updates_;
  double scale = 1 / static_cast<double>(tokens);
  if (options_.grad_clip > 0) scale *= std::min(1.0, options_.grad_clip / (report.norm + 1e-6));
  const auto t = static_cast<double>(updates_);
  kernel::AdamW o;
  o.gradient_scale = static_cast<float>(scale);
  o.learning_rate = static_cast<float>(learning_rate);
  o.beta1 = static_cast<float>(options_.beta1);
  o.beta2 = static_cast<float>(options_.beta2);
  o.rest1 = static_cast<float>(1 - options_.beta1);
  o.rest2 = static_cast<float>(1 - options_.beta2);
  o.eps = static_cast<float>(options_.eps);
  o.correction1 = static_cast<float>(1 - portable::pow(options_.beta1, t));
  o.sqrt_correction2 = static_cast<float>(std::sqrt(1 - portable::pow(options_.beta2, t)));
  kernel::AdamW with_decay = o;
  with_decay.decay = static_cast<float>(options_.weight_decay);
  parallel_for(count, 8, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const Piece& p = pieces_[static_cast<size_t>(i)];
      kernel::adamw(p.decays ? with_decay : o, p.n, gradient_sum + p.offset, parameters_.values() + p.offset,
                    m_.data() + p.offset, v_.data() + p.offset);
    }
  });
  parameters_.changed();
  return report;
}

std::string first_not_finite(const Parameters& layout, const float* values) {
  for (const Parameter& p : layout.list())
    for (int64_t i = 0; i < p.shape.volume(); ++i)
      if (!std::isfinite(values[p.offset + i])) return p.name;
  return "";
}

}  // namespace bary
