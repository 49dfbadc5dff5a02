// SPDX-License-Identifier: Apache-2.0
#include "bary/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"

namespace bary {
namespace {

double share(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

// The first update of wsd's decay; never inside the warm-up, where both curves would be asked for at once.
int64_t decay_start(const Schedule& s) {
  double length = std::floor(s.decay_frac * static_cast<double>(s.decay_iters) + 0.5);
  return std::max(s.warmup_iters, s.decay_iters - static_cast<int64_t>(length));
}

}  // namespace

void check_schedule(const Schedule& s) {
  bool rates = std::isfinite(s.learning_rate) && std::isfinite(s.min_lr) && s.learning_rate >= 0 && s.min_lr >= 0;
  BARY_CHECK(rates, "schedule: learning_rate {} and min_lr {} must be finite and not negative", s.learning_rate,
             s.min_lr);
  BARY_CHECK(s.kind == ScheduleKind::constant || s.min_lr <= s.learning_rate,
             "schedule: min_lr {} is above learning_rate {}; lower --min_lr", s.min_lr, s.learning_rate);
  BARY_CHECK(s.warmup_iters >= 0, "schedule: warmup_iters is {}, must be at least 0", s.warmup_iters);
  BARY_CHECK(s.decay_iters >= 0, "schedule: the decay's length is {}, must be at least 0", s.decay_iters);
  BARY_CHECK(s.decay_frac >= 0 && s.decay_frac <= 1, "schedule: decay_frac is {}, must lie between 0 and 1",
             s.decay_frac);
}

double learning_rate(const Schedule& s, int64_t it) {
  BARY_CHECK(it >= 0, "schedule: update {} was asked for; updates count from 0", it);
  if (it < s.warmup_iters) return s.learning_rate * share(it + 1, s.warmup_iters + 1);
  double range = s.learning_rate - s.min_lr;
  switch (s.kind) {
    case ScheduleKind::constant:
      return s.learning_rate;
    case ScheduleKind::inv_sqrt:
      return std::max(s.min_lr, s.learning_rate * std::sqrt(share(s.warmup_iters + 1, it + 1)));
    default:
      break;
  }
  if (it >= s.decay_iters) return s.min_lr;
  double r = share(it - s.warmup_iters, s.decay_iters - s.warmup_iters);
  switch (s.kind) {
    case ScheduleKind::cosine:
      return s.min_lr + range * (0.5 * (1 + portable::cos_turns(0.5 * r)));
    case ScheduleKind::linear:
      return s.min_lr + range * (1 - r);
    case ScheduleKind::wsd: {
      int64_t start = decay_start(s);
      if (it < start) return s.learning_rate;
      return s.min_lr + range * (1 - std::sqrt(share(it - start, s.decay_iters - start)));
    }
    default:
      fail("schedule: unknown kind {}; choose constant, cosine, linear, wsd or inv_sqrt", static_cast<int>(s.kind));
  }
}

}  // namespace bary
