// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "bary/base/clock.h"
#include "bary/lab/lengths.h"
#include "bary/lab/random_tensor.h"
#include "bary/model/count.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/fused.h"

namespace bary::lab {

std::vector<double> counted_parts(int64_t T) {
  ModelConfig c = preset("block"), no_mlp = c, no_mixer = c, no_block = c;
  no_mlp.mlp = MlpKind::none, no_mixer.mixer = Mixer::none, no_block.n_layer = 0;
  auto count = [](const ModelConfig& m, int64_t t) { return count_flops(m, t).forward; };
  auto attention = [&](int64_t t) { return count(c, t) - count(no_mixer, t); };
  // attention(T) = a T + b T (T + 1): solved at T = 1 and 2
  const double b = (attention(2) - 2 * attention(1)) / 2, tokens = static_cast<double>(T);
  const double scores = b * tokens * (tokens + 1), numbers = static_cast<double>(T * c.n_embd);
  return {scores, attention(T) - scores, count(c, T) - count(no_mlp, T), 2 * numbers, numbers, count(no_block, T)};
}

std::vector<double> timed_parts(int64_t T, int64_t repeats) {
  const int64_t C = 128, V = 1024, F = 4 * C;
  const Tensor x = random_tensor({1, T, C}, 1), qkv = random_tensor({1, T, 3 * C}, 2);
  const Tensor up = random_tensor({F, C}, 3), down = random_tensor({C, F}, 4), wqkv = random_tensor({3 * C, C}, 5);
  const Tensor square = random_tensor({C, C}, 6), table = random_tensor({V, C}, 7), ones = random_tensor({C}, 8);
  std::vector<int32_t> ids(static_cast<size_t>(T));
  RandomStream random(1, Purpose::synthetic);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(V));
  AttentionOptions o;
  o.heads = 4;
  const std::vector<std::function<void()>> parts{[&] { attention(qkv, o); },
                                                 [&] { linear(x, wqkv), linear(x, square); },
                                                 [&] {
                                                   mlp(x, {up, {}, down, {}}, Activation::gelu);
                                                 },
                                                 [&] { layer_norm(x, ones, ones); },
                                                 [&] { embedding(ids, 1, table); },
                                                 [&] { linear(x, table); }};
  std::vector<double> best(kParts, HUGE_VAL);
  for (int64_t i = 0; i < repeats; ++i) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const Stopwatch watch;
      parts[p]();
      best[p] = std::min(best[p], watch.seconds());
    }
  }
  return best;
}

}  // namespace bary::lab
