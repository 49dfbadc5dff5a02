// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/buffer.h"

#include <gtest/gtest.h>

#include <thread>

namespace bary {
namespace {

TEST(MemoryWatch, SeesTheMostThatWasHeldAtOnceAndNotWhatWasHeldBefore) {
  const Buffer before(5000);
  const MemoryWatch watch;
  EXPECT_EQ(watch.peak_floats(), 0);
  { const Buffer a(1000), b(300); }
  const Buffer c(700);
  EXPECT_EQ(watch.peak_floats(), 1300);
}

TEST(Buffer, LargeBlocksBeyondTheLimitGoBackToTheSystem) {
  std::thread([] {  // whose pool holds nothing that other tests left
    const int64_t before = pooled_floats(), limit = keep_freed(0), large = int64_t{9} << 19;
    { const Buffer a(large); }
    EXPECT_EQ(pooled_floats(), before);
    EXPECT_EQ(keep_freed(2 * large), 0);
    { const Buffer a(large); }
    EXPECT_EQ(pooled_floats(), before + large);
    { const Buffer a(large); }  // the same block
    EXPECT_EQ(pooled_floats(), before + large);
    keep_freed(limit);
  })
      .join();
}

TEST(MemoryWatch, AMovedBufferCountsOnce) {
  const MemoryWatch watch;
  Buffer a(1000), b(std::move(a));
  a = std::move(b);
  EXPECT_EQ(watch.peak_floats(), 1000);
  a = Buffer(200);  // the new one is there before the old one goes
  EXPECT_EQ(watch.peak_floats(), 1200);
}

TEST(MemoryWatch, OtherThreadsCount) {
  const MemoryWatch watch;
  std::thread([] { const Buffer a(400); }).join();
  EXPECT_EQ(watch.peak_floats(), 400);
}

}  // namespace
}  // namespace bary
