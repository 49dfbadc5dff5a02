// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "bary/base/error.h"

namespace bary {
namespace {

std::atomic<int64_t> g_floats{0};

// Eight size classes an octave: at most 1/8 is wasted, and lengths that vary a little reuse the same block.
int64_t size_class(int64_t n) {
  int64_t step = n <= 128 ? 16 : int64_t{1} << (std::bit_width(static_cast<uint64_t>(n - 1)) - 4);
  return (n + step - 1) / step * step;
}

}  // namespace

class BufferPool {
 public:
  ~BufferPool() {
    for (auto& [capacity, list] : free_)
      for (float* p : list) release(p, capacity);
  }
  float* take(int64_t capacity) {
    {
      std::lock_guard lock(mutex_);
      auto it = free_.find(capacity);
      if (it != free_.end() && !it->second.empty()) {
        float* p = it->second.back();
        it->second.pop_back();
        kept_ -= capacity;
        return p;
      }
    }
    size_t bytes = static_cast<size_t>(capacity) * 4;
    constexpr size_t kHuge = 2 << 20;
    size_t alignment = bytes >= kHuge ? kHuge : 64;
    void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    BARY_CHECK(p != nullptr, ErrorKind::system,
               "out of memory: asked for {} MB; choose a smaller model, batch or context", bytes >> 20);
    if (bytes >= kHuge) madvise(p, bytes, MADV_HUGEPAGE);
    g_floats += capacity;
    return static_cast<float*>(p);
  }
  void give(float* p, int64_t capacity) {
    constexpr int64_t kMostKept = int64_t{1} << 28;  // 1 GiB a thread: beyond it, memory goes back to the system
    std::lock_guard lock(mutex_);
    if (kept_ + capacity > kMostKept) return release(p, capacity);
    kept_ += capacity;
    free_[capacity].push_back(p);
  }
  static std::shared_ptr<BufferPool>& mine() {
    thread_local auto pool = std::make_shared<BufferPool>();
    return pool;
  }

 private:
  static void release(float* p, int64_t capacity) {
    std::free(p);
    g_floats -= capacity;
  }
  std::mutex mutex_;
  std::map<int64_t, std::vector<float*>> free_;
  int64_t kept_ = 0;
};

Buffer::Buffer(int64_t floats)
    : size_(floats), capacity_(size_class(floats > 0 ? floats : 1)), pool_(BufferPool::mine()) {
  data_ = pool_->take(capacity_);
}
Buffer::~Buffer() {
  if (data_) pool_->give(data_, capacity_);
}
Buffer::Buffer(Buffer&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(o.size_), capacity_(o.capacity_), pool_(std::move(o.pool_)) {}
Buffer& Buffer::operator=(Buffer&& o) noexcept {
  if (this != &o) {
    if (data_) pool_->give(data_, capacity_);
    data_ = std::exchange(o.data_, nullptr);
    size_ = o.size_;
    capacity_ = o.capacity_;
    pool_ = std::move(o.pool_);
  }
  return *this;
}

int64_t pooled_floats() { return g_floats; }

}  // namespace bary
