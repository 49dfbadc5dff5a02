// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"

namespace bary {

void check_sampler(const SamplerOptions& o) {
  BARY_CHECK(o.temperature >= 0 && std::isfinite(o.temperature),
             "temperature: got {}, expected 0 (always the most likely token) or "
             "more; 1 leaves the model's probabilities as they are",
             o.temperature);
  BARY_CHECK(o.top_k >= 0, "top_k: got {}, expected 0 (off) or more", o.top_k);
  BARY_CHECK(o.top_p >= 0 && o.top_p <= 1, "top_p: got {}, expected a probability in [0, 1]; 1 is off", o.top_p);
  BARY_CHECK(o.min_p >= 0 && o.min_p <= 1, "min_p: got {}, expected a share in [0, 1]; 0 is off", o.min_p);
  BARY_CHECK(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty),
             "repetition_penalty: got {}, expected more than 0; 1 "
             "is off",
             o.repetition_penalty);
}

namespace {

struct Candidate {
  int32_t id;
  double logit;
};

bool before(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

std::vector<Candidate> candidates(std::span<const float> logits, std::span<const int32_t> history, double penalty) {
  std::vector<Candidate> c(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    BARY_CHECK(!std::isnan(logits[i]), ErrorKind::numeric,
               "generate: the logit of token {} is not a number; the model's weights "
               "are damaged or its training diverged",
               i);
    c[i] = {static_cast<int32_t>(i), logits[i]};
  }
  if (penalty == 1) return c;
  std::vector<bool> seen(logits.size(), false);
  for (int32_t id : history) {
    auto i = static_cast<size_t>(id);
    if (i >= logits.size() || seen[i]) continue;
    seen[i] = true;
    c[i].logit = c[i].logit > 0 ? c[i].logit / penalty : c[i].logit * penalty;
  }
  return c;
}

// How many of the sorted candidates stay, given their unnormalised probabilities (the first is 1)
size_t kept(std::span<const double> weight, const SamplerOptions& o) {
  double total = std::accumulate(weight.begin(), weight.end(), 0.0), sum = 0;
  size_t n = weight.size();
  if (o.top_p < 1) {
    for (n = 0; n < weight.size();) {
      sum += weight[n++];
      if (sum >= o.top_p * total) break;
    }
  }
  size_t m = 0;
  while (m < n && weight[m] >= o.min_p) ++m;
  return std::max<size_t>(m, 1);
}

}  // namespace

int32_t sample_token(std::span<const float> logits, int64_t allowed, std::span<const int32_t> history,
                     const SamplerOptions& o, RandomStream& random) {
  allowed = std::min<int64_t>(allowed, static_cast<int64_t>(logits.size()));
  BARY_CHECK(allowed > 0, "generate: no token is allowed; the tokenizer is empty");
  auto c = candidates(logits.first(static_cast<size_t>(allowed)), history, o.repetition_penalty);
  if (o.temperature == 0) return std::min_element(c.begin(), c.end(), before)->id;
  if (o.top_k > 0 && o.top_k < allowed) {
    std::partial_sort(c.begin(), c.begin() + o.top_k, c.end(), before);
    c.resize(static_cast<size_t>(o.top_k));
  } else {
    std::sort(c.begin(), c.end(), before);
  }
  std::vector<double> weight;
  weight.reserve(c.size());
  for (const Candidate& x : c) {
    const bool top = x.logit == c[0].logit;  // also where both are infinite
    weight.push_back(top ? 1 : portable::exp((x.logit - c[0].logit) / o.temperature));
  }
  const size_t n = kept(weight, o);
  const double u = random.uniform() * std::accumulate(weight.begin(), weight.begin() + static_cast<int64_t>(n), 0.0);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    sum += weight[i];
    if (u < sum) return c[i].id;
  }
  return c[n - 1].id;
}

}  // namespace bary
