// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/training.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"

namespace bary::lab {
namespace {

TEST(LabTraining, ALossThatIsNotFiniteEndsItAndNamesTheUpdate) {
  Recipe r;
  r.model.vocab_size = 8, r.model.block_size = 4, r.model.n_embd = 8, r.model.n_head = 2;
  r.steps = 9, r.batch = 2;
  const Plan plan{Budget::smoke, 1, true};
  const Work work{plan, {}, [](double) {}};
  const Batches zeros = [](int64_t, int64_t, std::span<int32_t> in, std::span<int32_t> out) {
    std::fill(in.begin(), in.end(), 1), std::fill(out.begin(), out.end(), 2);
  };
  int64_t seen = 0;
  const Watch watch = [&](const StepSeen& s, LanguageModel&) {
    EXPECT_TRUE(std::isfinite(s.loss));
    seen = s.step;
  };
  train_model(r, zeros, work, watch);
  EXPECT_EQ(seen, 9);
  r.learning_rate = 1e30;
  try {
    train_model(r, zeros, work, watch);
    FAIL() << "it went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::numeric);
    EXPECT_EQ(std::string(e.what()).find(fmt::format("broke off at update {} of 9: the ", seen + 1)), 0u) << e.what();
  }
}

}  // namespace
}  // namespace bary::lab
