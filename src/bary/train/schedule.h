// SPDX-License-Identifier: Apache-2.0
// The learning rate of every update: a pure function of its number, so a resumed run continues on the same curve.
#pragma once
#include <cstdint>

namespace bary {

// With L = learning_rate, m = min_lr, w = warmup_iters, n = decay_iters, it = 0, 1, ... the number of the update:
//   it < w (all kinds)   L (it+1) / (w+1)        the first update moves, update w is the first at L
//   it >= n              m                       cosine, linear, wsd
// and between, with r = (it-w) / (n-w) in [0,1):
enum class ScheduleKind {
  constant,  // L
  cosine,    // m + (L-m) (1 + cos(pi r)) / 2       Loshchilov, Hutter 2017 without restarts; nanoGPT's
  linear,    // m + (L-m) (1 - r)
  wsd,       // L until s = n - decay_frac n, then m + (L-m) (1 - sqrt((it-s) / (n-s)))   Haegele et al. 2024
  inv_sqrt,  // max(m, L sqrt((w+1) / (it+1)))      Vaswani et al. 2017, section 5.3
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double learning_rate = 1e-3;  // the peak
  double min_lr = 1e-4;
  int64_t warmup_iters = 100;
  int64_t decay_iters = 3000;  // usually the run's length
  double decay_frac = 0.2;     // wsd: the share of decay_iters that decays, rounded to whole updates
};

// Input Error for a negative, non-finite or contradictory value, naming its key; a run asks this before it starts.
void check_schedule(const Schedule& schedule);

double learning_rate(const Schedule& schedule, int64_t it);  // same bits on every machine

}  // namespace bary
