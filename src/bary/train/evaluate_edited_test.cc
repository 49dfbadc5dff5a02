// SPDX-License-Identifier: Apache-2.0
// A model that somebody edits through a probe is evaluated as edited, window by window.
#include <bit>
#include <chrono>
#include <thread>

#include "bary/tensor/tap.h"
#include "bary/train/evaluate.h"
#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

TEST(EvaluateEdited, IsOfTheEditedModelWithAnyThreads) {
  const LanguageModel model(small_model(), 3);
  const std::vector<int32_t> ids = random_ids(8 * 60 + 1, 29);
  const auto loss = [&](int n) {
    const Threads limit(n);
    return std::bit_cast<uint64_t>(evaluate_all(model, ids, {}, true).loss_sum);
  };
  const auto some = [&](int n) {
    const Threads limit(n);
    return std::bit_cast<uint64_t>(evaluate_some(model, ids, {}, 30, 1).loss_sum);
  };
  const uint64_t intact = loss(1), intact_some = some(1);
  Probe probe;
  int64_t seen = 0;
  probe.edit("blocks.0.attn.hook_pattern", [](const Tensor& pattern) {  // (B H,T,T): head 1 of two moves nothing
    std::this_thread::sleep_for(std::chrono::microseconds(200));        // so that other threads would find work left
    Tensor kept = Tensor::from(pattern.shape(), pattern.to_vector());
    for (int64_t r = 0; r < kept.rows(); ++r)
      if (r / kept.dim(1) % 2 == 1) std::fill_n(kept.row(r), kept.channels(), 0.0f);
    return kept;
  });
  probe.look("blocks.0.attn.hook_pattern", [&](const Tensor&) { ++seen; });
  const uint64_t edited = loss(1);
  EXPECT_EQ(seen, 60);
  EXPECT_NE(edited, intact);
  EXPECT_EQ(loss(3), edited);
  EXPECT_EQ(seen, 120) << "looks see every window";
  EXPECT_NE(some(1), intact_some);
  EXPECT_EQ(some(3), some(1));
}

}  // namespace
}  // namespace bary
