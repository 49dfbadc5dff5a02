// SPDX-License-Identifier: Apache-2.0
// A small training run on made-up tokens that needs no file, and ways to look at its result bit by bit.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bary/base/random.h"
#include "bary/train/loop.h"
#include "bary/train/small_model_test.h"
#include "bary/train/text_objective.h"

namespace bary::same_bits {

using test::Folder;
using test::Threads;

// Tokens with something to learn in them: mostly t+1 follows t, small ids are more frequent.
inline std::vector<int32_t> made_up_tokens(int64_t n, int64_t V, uint64_t seed = 1) {
  RandomStream random(seed, Purpose::test);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  int32_t now = 0;
  for (int32_t& id : ids) {
    const double u = random.uniform();
    now = random.below(4) == 0 ? static_cast<int32_t>(u * u * static_cast<double>(V))
                               : static_cast<int32_t>((now + 1) % V);
    id = now;
  }
  return ids;
}

struct Data {  // holds the ids its spans point into
  Data(int64_t n, int64_t V) : ids(made_up_tokens(n, V)) {
    TokenSplit split = split_tokens(ids, 0.1);
    data.train = split.train, data.val = split.val, data.vocab_size = V, data.name = "made up";
    if (V == 256) data.tokenizer = Tokenizer::bytes();
  }
  std::vector<int32_t> ids;
  TrainData data;
};

// The chapter's block, half as wide, on a short window and bytes.
inline ModelConfig small_block() {
  ModelConfig c;
  c.vocab_size = 256, c.block_size = 32, c.n_embd = 64;
  return c;
}

inline TrainConfig fifty_steps(const std::string& out_dir) {
  TrainConfig t;
  t.out_dir = out_dir, t.batch_size = 8, t.max_iters = 50, t.eval_interval = 0, t.eval_iters = 4, t.log_interval = 50;
  t.schedule = {ScheduleKind::cosine, 1e-3, 1e-4, 5, 0, 0.2};  // a rate that differs at every step
  t.adamw.grad_clip = 1;
  return t;
}

inline std::string weights_after(const ModelConfig& m, const TrainConfig& t, const Data& data, TrainHooks hooks = {}) {
  LanguageModel model(m, t.seed);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, std::move(hooks), nlohmann::json::object());
  return loop.run().weights_sha256;
}

inline std::string bits(double x) { return fmt::format("{:016x}", std::bit_cast<uint64_t>(x)); }

inline testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], 4) != 0)
      return testing::AssertionFailure() << "value " << i << " of " << a.size() << ": " << a[i] << " and " << b[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace bary::same_bits
