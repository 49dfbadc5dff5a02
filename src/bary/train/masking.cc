// SPDX-License-Identifier: Apache-2.0
#include "bary/train/masking.h"

#include <algorithm>

#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/train/chosen.h"

namespace bary {
namespace {

// Positions asked for keep their token in targets; hide(position, stream) says what stands in its place.
template <class Hide>
void ask(const MaskName& name, std::span<int32_t> inputs, std::span<int32_t> targets, const Hide& hide) {
  RandomStream random(name.seed, Purpose::mask, name.step, name.sequence);
  const auto T = inputs.size();
  std::vector<uint8_t> asked(T);
  for (uint8_t& a : asked) a = random.uniform() < 0.15;
  if (std::find(asked.begin(), asked.end(), 1) == asked.end())  // no window asks for nothing
    asked[static_cast<size_t>(random.below(T))] = 1;
  for (size_t t = 0; t < T; ++t) {
    targets[t] = asked[t] ? inputs[t] : -1;
    if (asked[t]) inputs[t] = hide(inputs[t], random);
  }
}

}  // namespace

void hide_tokens(int32_t mask, int64_t vocab_size, const MaskName& name, std::span<int32_t> inputs,
                 std::span<int32_t> targets) {
  ask(name, inputs, targets, [&](int32_t token, RandomStream& random) {
    const double u = random.uniform();
    const auto other = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab_size)));
    return u < 0.8 ? mask : u < 0.9 ? other : token;
  });
}

Evaluation evaluate_masked(const LanguageModel& model, TokenSpan tokens, int32_t mask, int64_t count, uint64_t seed) {
  const int64_t T = model.config().block_size;
  const Windows windows(tokens, T, "the text to evaluate");
  const int64_t n = count ? count : (tokens.size() - 1) / T;
  std::vector<Evaluation> parts(static_cast<size_t>(n));
  parallel_tasks(n, [&](int64_t i, int) {
    std::vector<int32_t> in(static_cast<size_t>(T)), out(in.size());
    const auto index = static_cast<uint64_t>(i);
    if (count) {
      windows.window(seed, Purpose::eval_batch, 0, index, in, out);
    } else {
      windows.window_at(i * T, in, out);
    }
    ask({seed, 0, index}, in, out, [&](int32_t, RandomStream&) { return mask; });
    parts[static_cast<size_t>(i)] = judged(model.logits(in, 1), out);
  });
  Evaluation total;
  for (const Evaluation& p : parts) add(p, total);
  return total;
}

}  // namespace bary
