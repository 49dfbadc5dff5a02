// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/tap.h"

#include <chrono>
#include <thread>

#include "bary/base/error.h"
#include "bary/base/parallel.h"
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

TEST(Tap, OuterProbesEditFirstAndEveryLookSeesTheResult) {
  const Tensor x = Tensor::from({1}, Floats{1});
  std::vector<float> outer_seen, inner_seen;
  Probe outer;
  outer.look("here", [&](const Tensor& t) { outer_seen.push_back(t.item()); });
  outer.edit("here", [](const Tensor& t) { return t * 3.0f; });
  {
    Probe inner;
    inner.look("here", [&](const Tensor& t) { inner_seen.push_back(t.item()); });
    EXPECT_EQ(tap("here", x).item(), 3);
    inner.edit("here", [](const Tensor& t) { return t + Tensor::from({1}, Floats{1}); });
    EXPECT_EQ(tap("here", x).item(), 4);
    Probe elsewhere;
    EXPECT_EQ(tap("here", x).item(), 4);
  }
  EXPECT_EQ(tap("here", x).item(), 3);
  EXPECT_EQ(inner_seen, (std::vector<float>{3, 4, 4}));
  EXPECT_EQ(outer_seen, (std::vector<float>{3, 4, 4, 3}));
}

TEST(Tap, TasksComeToTheThreadOfTheProbe) {
  const Tensor x = Tensor::from({1}, Floats{1});
  set_threads(3);
  std::vector<float> seen;
  std::vector<float> after(20);
  {
    Probe probe;
    probe.look("here", [&](const Tensor& t) { seen.push_back(t.item()); });
    probe.edit("here", [](const Tensor& t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that other threads would find work left
      return t * 2.0f;
    });
    parallel_tasks(20, [&](int64_t i, int) {
      after[static_cast<size_t>(i)] = tap("here", Tensor::from({1}, Floats{static_cast<float>(i)})).item();
    });
    std::thread([&] {
      EXPECT_FALSE(Probe::any());
      EXPECT_EQ(tap("here", x).item(), 1);
    }).join();
  }
  set_threads(0);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(after[i], 2 * static_cast<float>(i));
  EXPECT_EQ(seen, after);
}

}  // namespace
}  // namespace bary
