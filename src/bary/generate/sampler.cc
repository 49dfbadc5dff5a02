// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "bary/base/error.h"
#include "bary/kernel/loss.h"

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

// The logits that may be drawn, after the repetition penalty.
std::vector<float> penalised(std::span<const float> logits, std::span<const int32_t> history, double penalty) {
  std::vector<float> x(logits.begin(), logits.end());
  for (size_t i = 0; i < x.size(); ++i) {
    BARY_CHECK(!std::isnan(x[i]), ErrorKind::numeric,
               "generate: the logit of token {} is not a number; the model's weights "
               "are damaged or its training diverged",
               i);
  }
  if (penalty == 1) return x;
  std::vector<bool> seen(x.size(), false);
  for (int32_t id : history) {
    auto i = static_cast<size_t>(id);
    if (i >= x.size() || seen[i]) continue;
    seen[i] = true;
    const double logit = x[i];
    x[i] = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
  return x;
}

// Which of the tokens may be drawn, as their weights: 0 for those that may not.
class Choice {
 public:
  Choice(std::vector<float> logits, double temperature) : logits_(std::move(logits)), weights_(logits_.size()) {
    const float top = *std::max_element(logits_.begin(), logits_.end());
    for (size_t i = 0; i < logits_.size(); ++i) {  // the best at 0, also where it is infinite
      const double below = static_cast<double>(logits_[i]) - static_cast<double>(top);
      weights_[i] = logits_[i] == top ? 0.0f : static_cast<float>(below / temperature);
    }
    const auto n = static_cast<int64_t>(weights_.size());
    kernel::softmax_rows(1, n, weights_.data(), n, weights_.data(), n);
    best_ = *std::max_element(weights_.begin(), weights_.end());
  }

  void keep_most_likely(int64_t k) {
    std::vector<int32_t> ids = all();
    std::nth_element(ids.begin(), ids.begin() + k, ids.end(), [this](int32_t a, int32_t b) { return likelier(a, b); });
    for (auto i = ids.begin() + k; i != ids.end(); ++i) weights_[static_cast<size_t>(*i)] = 0;
  }
  // The most likely until their sum reaches p of all there are, the crossing one included.
  void keep_share(double p) {
    const double enough = p * total();
    std::vector<int32_t> ids = all();
    auto later = [this](int32_t a, int32_t b) { return likelier(b, a); };  // a heap has its last on top
    std::make_heap(ids.begin(), ids.end(), later);
    double sum = 0;
    do {
      std::pop_heap(ids.begin(), ids.end(), later);
      sum += weight(ids.back());
      ids.pop_back();
    } while (sum < enough && !ids.empty());
    for (int32_t id : ids) weights_[static_cast<size_t>(id)] = 0;
  }
  void keep_above(double share) {
    for (float& w : weights_)
      if (static_cast<double>(w) < share * static_cast<double>(best_)) w = 0;
  }

  int32_t draw(double u) const {
    const double at = u * total();
    double sum = 0;
    int32_t last = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      sum += static_cast<double>(weights_[i]);
      last = static_cast<int32_t>(i);
      if (at < sum) break;
    }
    return last;
  }

 private:
  std::vector<int32_t> all() const {
    std::vector<int32_t> ids(logits_.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  double weight(int32_t id) const { return static_cast<double>(weights_[static_cast<size_t>(id)]); }
  double total() const {
    double sum = 0;
    for (float w : weights_) sum += static_cast<double>(w);
    return sum;
  }
  // More likely first, ties by id; tokens that are out already come last.
  bool likelier(int32_t a, int32_t b) const {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if ((weights_[i] == 0) != (weights_[j] == 0)) return weights_[i] != 0;
    return logits_[i] != logits_[j] ? logits_[i] > logits_[j] : a < b;
  }

  std::vector<float> logits_, weights_;
  float best_ = 0;
};

}  // namespace

int32_t sample_token(std::span<const float> logits, int64_t allowed, std::span<const int32_t> history,
                     const SamplerOptions& o, RandomStream& random) {
  allowed = std::min<int64_t>(allowed, static_cast<int64_t>(logits.size()));
  BARY_CHECK(allowed > 0, "generate: no token is allowed; the tokenizer is empty");
  auto x = penalised(logits.first(static_cast<size_t>(allowed)), history, o.repetition_penalty);
  if (o.temperature == 0) return static_cast<int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
  Choice choice(std::move(x), o.temperature);
  if (o.top_k > 0 && o.top_k < allowed) choice.keep_most_likely(o.top_k);
  if (o.top_p < 1) choice.keep_share(o.top_p);
  if (o.min_p > 0) choice.keep_above(o.min_p);
  return choice.draw(random.uniform());
}

}  // namespace bary
