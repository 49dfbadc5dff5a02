// SPDX-License-Identifier: Apache-2.0
#include "bary/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "bary/base/error.h"

namespace bary {
namespace {

TEST(Parallel, EveryIndexOnceAtAnyThreadCount) {
  for (int n : {1, 2, 3, 8}) {
    set_threads(n);
    EXPECT_EQ(threads(), n);
    for (int64_t size : {0, 1, 2, 7, 64, 1000}) {
      std::vector<int> seen(size, 0);
      parallel_for(size, 3, [&](int64_t b, int64_t e) {
        EXPECT_TRUE(b % 3 == 0 && e - b <= 3);
        for (int64_t i = b; i < e; ++i) ++seen[i];
      });
      for (int s : seen) EXPECT_EQ(s, 1);
    }
  }
  set_threads(0);
}

TEST(Parallel, NestedLoopsRunInPlaceAndKeepTheWorker) {
  set_threads(3);
  std::atomic<int> total{0}, wrong{0};
  parallel_tasks(20, [&](int64_t, int worker) {
    parallel_tasks(5, [&](int64_t, int inner) {
      ++total;
      if (inner != worker) ++wrong;
    });
  });
  EXPECT_EQ(total, 100);
  EXPECT_EQ(wrong, 0);
  set_threads(0);
}

TEST(Parallel, ExceptionsComeBackToTheCaller) {
  set_threads(2);
  EXPECT_THROW(parallel_tasks(50, [](int64_t i, int) { BARY_CHECK(i != 17, "seventeen"); }), Error);
  int64_t sum = 0;
  parallel_for(1, 1, [&](int64_t, int64_t e) { sum += e; });
  EXPECT_EQ(sum, 1);  // the pool lives on
  set_threads(0);
}

TEST(Parallel, DenormalsAreFlushedInBodiesOnly) {
  volatile float tiny = 1e-38f;
  parallel_for(4, 1, [&](int64_t, int64_t) { EXPECT_EQ(tiny * 0.1f, 0.0f); });
  EXPECT_NE(tiny * 0.1f, 0.0f);
}

}  // namespace
}  // namespace bary
