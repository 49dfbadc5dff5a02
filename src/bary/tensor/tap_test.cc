// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tap.h"

#include <thread>

#include "bary/base/error.h"
#include "bary/tensor/gradient_check_test.h"

namespace bary {
namespace {

TEST(Tap, WithoutAProbeItIsTheTensorItself) {
  Tensor x = random_tensor({2, 3}, 1);
  EXPECT_FALSE(Probe::any());
  EXPECT_EQ(tap("blocks.0.hook_resid_pre", x).id(), x.id());
}

TEST(Tap, LookSeesWhatGoesOnAndChangesNothing) {
  Tensor x = random_tensor({2, 3}, 1);
  Probe probe;
  const void* seen = nullptr;
  probe.look("here", [&](const Tensor& t) { seen = t.id(); });
  EXPECT_EQ(tap("elsewhere", x).id(), x.id());
  EXPECT_EQ(seen, nullptr);
  EXPECT_EQ(tap("here", x).id(), x.id());
  EXPECT_EQ(seen, x.id());
}

TEST(Tap, EditGoesOnInItsPlaceAndLookSeesTheEdit) {
  Tensor x = random_tensor({2, 3}, 1).require_grad();
  Probe probe;
  Floats seen;
  probe.edit("here", [](const Tensor& t) { return t * 3.0f; });
  probe.look("here", [&](const Tensor& t) { seen = t.to_vector(); });
  Tape tape;
  Tensor y = tap("here", x);
  expect_same_bits(seen, y.to_vector(), "seen");
  tape.backward(sum(y));
  for (float g : x.grad_vector()) EXPECT_EQ(g, 3);  // an edit is part of the model while it lives
}

TEST(Tap, AnEditMayNotChangeTheShape) {
  Probe probe;
  probe.edit("here", [](const Tensor&) { return Tensor::zeros({1}); });
  try {
    tap("here", random_tensor({2, 3}, 1));
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "edit of here: returned shape (1), expected (2,3)");
  }
}

TEST(Tap, ProbesNestAndStayOnTheirThread) {
  int outer_seen = 0, inner_seen = 0;
  Tensor x = random_tensor({1}, 1);
  Probe outer;
  outer.look("here", [&](const Tensor&) { ++outer_seen; });
  {
    Probe inner;
    inner.look("here", [&](const Tensor&) { ++inner_seen; });
    tap("here", x);
  }
  tap("here", x);
  std::thread([&] {
    EXPECT_FALSE(Probe::any());
    tap("here", x);
  }).join();
  EXPECT_EQ(inner_seen, 1);
  EXPECT_EQ(outer_seen, 1);
}

}  // namespace
}  // namespace bary
