// SPDX-License-Identifier: Apache-2.0
#include "bary/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/sanitized_test.h"

namespace bary {
namespace {

// While it lives the process may take `more` bytes of addresses and no further ones.
class LittleRoom {
 public:
  explicit LittleRoom(rlim_t more) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit less{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    setrlimit(RLIMIT_AS, &less);
  }
  ~LittleRoom() { setrlimit(RLIMIT_AS, &before_); }
  LittleRoom(const LittleRoom&) = delete;
  LittleRoom& operator=(const LittleRoom&) = delete;

 private:
  rlimit before_{};
};

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

TEST(Parallel, TasksInOrderStayOnTheirThreadAndChunksDoNot) {
  set_threads(3);
  {
    const TasksInOrder in_order;
    const auto caller = std::this_thread::get_id();
    std::vector<int64_t> seen;
    std::atomic<int> elsewhere{0}, chunks{0};
    parallel_tasks(20, [&](int64_t i, int worker) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(worker, 0);
      seen.push_back(i);
      parallel_for(3, 1, [&](int64_t, int64_t) {
        const int all_three = 3 * (chunks++ / 3 + 1);
        while (chunks < all_three) std::this_thread::yield();  // so that every thread has one
        if (std::this_thread::get_id() != caller) ++elsewhere;
      });
    });
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(seen.at(static_cast<size_t>(i)), i);
    EXPECT_EQ(elsewhere, 40);
  }
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

TEST(Parallel, MoreThreadsThanTheSystemStartsAreRefused) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer needs addresses of its own for every thread";
  set_threads(2);
  try {
    const LittleRoom room(rlim_t{512} << 20);
    set_threads(1024);
    ADD_FAILURE() << "1024 threads in half a gigabyte of addresses";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::system);
    EXPECT_EQ(std::string(e.what()).find("threads: 1024 were asked for and the system started "), 0u) << e.what();
  }
  EXPECT_EQ(threads(), 2);
  std::atomic<int> total{0};
  parallel_tasks(20, [&](int64_t, int) { ++total; });
  EXPECT_EQ(total, 20);
  set_threads(0);
}

TEST(Parallel, DenormalsAreFlushedInBodiesOnly) {
  volatile float tiny = 1e-38f;
  parallel_for(4, 1, [&](int64_t, int64_t) { EXPECT_EQ(tiny * 0.1f, 0.0f); });
  EXPECT_NE(tiny * 0.1f, 0.0f);
}

}  // namespace
}  // namespace bary
