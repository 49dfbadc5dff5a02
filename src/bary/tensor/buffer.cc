// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bary/base/error.h"

namespace bary {
namespace {

std::atomic<int64_t> g_floats{0};  // in pools or in use
std::atomic<int64_t> g_most_kept{int64_t{1} << 28};
std::atomic<bool> g_watched{false};
std::atomic<int64_t> g_live{0}, g_peak{0};  // in use beyond what was when the watch began, and the most of that

// Only while somebody wants to know: threads that all write one count wait for each other.
void count_live(int64_t floats) {
  if (!g_watched.load(std::memory_order_relaxed)) return;
  const int64_t now = g_live.fetch_add(floats, std::memory_order_relaxed) + floats;
  int64_t peak = g_peak.load(std::memory_order_relaxed);
  while (now > peak && !g_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

// Eight size classes an octave: at most 1/8 is wasted, and lengths that vary a little reuse the same block.
int64_t size_class(int64_t n) {
  int64_t step = n <= 128 ? 16 : int64_t{1} << (std::bit_width(static_cast<uint64_t>(n - 1)) - 4);
  return (n + step - 1) / step * step;
}

constexpr size_t kHugePage = 2 << 20;
constexpr int64_t kOwnBlock = kHugePage / 4;  // floats from which a block is an allocation of its own
constexpr int64_t kSlab = 4 * kOwnBlock;

// On huge pages: a column of a matrix touches a page a row, more than the first translation buffer holds of small ones.
float* allocate(int64_t floats) {
  const size_t bytes = (static_cast<size_t>(floats) * 4 + kHugePage - 1) / kHugePage * kHugePage;
  void* p = std::aligned_alloc(kHugePage, bytes);
  BARY_CHECK(p != nullptr, ErrorKind::system,
             "out of memory: asked for {} MB; choose a smaller model, batch or context", bytes >> 20);
  madvise(p, bytes, MADV_HUGEPAGE);
  return static_cast<float*>(p);
}

}  // namespace

class BufferPool {
 public:
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
    float* p = capacity >= kOwnBlock ? allocate(capacity) : cut(capacity);
    g_floats += capacity;
    return p;
  }
  void give(float* p, int64_t capacity) {
    std::lock_guard lock(mutex_);
    if (capacity >= kOwnBlock && (!leased_ || kept_ + capacity > g_most_kept)) return release(p, capacity);
    kept_ += capacity;
    free_[capacity].push_back(p);
  }
  void lease() {
    std::lock_guard lock(mutex_);
    leased_ = true;
  }
  void leave() {  // large blocks go back to the system
    std::lock_guard lock(mutex_);
    leased_ = false;
    for (auto it = free_.begin(); it != free_.end();) {
      if (it->first < kOwnBlock) {
        ++it;  // cut from a slab, whose other parts may be in use
        continue;
      }
      for (float* p : it->second) release(p, it->first), kept_ -= it->first;
      it = free_.erase(it);
    }
  }
  static BufferPool* mine();

 private:
  // Small blocks are cut off a slab, which stays with the pool.
  float* cut(int64_t capacity) {  // by the pool's own thread only
    if (left_ < capacity) {
      next_ = allocate(kSlab);
      left_ = kSlab;
    }
    left_ -= capacity;
    return std::exchange(next_, next_ + capacity);
  }
  static void release(float* p, int64_t capacity) {
    if (capacity >= kOwnBlock) std::free(p);
    g_floats -= capacity;
  }
  float* next_ = nullptr;
  int64_t left_ = 0;
  std::mutex mutex_;
  bool leased_ = false;  // by a thread that lives
  std::map<int64_t, std::vector<float*>> free_;
  int64_t kept_ = 0;
};

namespace {

// Pools outlive their threads, since buffers may; the next thread takes over what one left. They are never destroyed,
// so a buffer needs to count nothing to point at its own.
struct Pools {
  std::mutex mutex;
  std::vector<std::unique_ptr<BufferPool>> all;
  std::vector<BufferPool*> left;
};
Pools& pools() {
  static auto* const p = new Pools;
  return *p;
}

struct Lease {
  BufferPool* pool;
  Lease() {
    std::lock_guard lock(pools().mutex);
    if (pools().left.empty()) {
      pool = pools().all.emplace_back(std::make_unique<BufferPool>()).get();
    } else {
      pool = pools().left.back();
      pools().left.pop_back();
    }
    pool->lease();
  }
  ~Lease() {
    pool->leave();
    std::lock_guard lock(pools().mutex);
    pools().left.push_back(pool);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
};

}  // namespace

BufferPool* BufferPool::mine() {
  thread_local const Lease lease;
  return lease.pool;
}

static int64_t checked(int64_t floats) {
  BARY_CHECK(floats >= 0 && floats <= int64_t{1} << 44, "memory for {} numbers is asked for; nothing holds so many",
             floats);
  return floats;
}

Buffer::Buffer(int64_t floats)
    : size_(checked(floats)), capacity_(size_class(floats > 0 ? floats : 1)), pool_(BufferPool::mine()) {
  data_ = pool_->take(capacity_);
  count_live(size_);
}
Buffer::~Buffer() { release(); }
void Buffer::release() {
  if (!data_) return;
  pool_->give(std::exchange(data_, nullptr), capacity_);
  count_live(-size_);
}
Buffer::Buffer(Buffer&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(o.size_), capacity_(o.capacity_), pool_(o.pool_) {}
Buffer& Buffer::operator=(Buffer&& o) noexcept {
  if (this != &o) {
    release();
    data_ = std::exchange(o.data_, nullptr);
    size_ = o.size_;
    capacity_ = o.capacity_;
    pool_ = o.pool_;
  }
  return *this;
}

int64_t pooled_floats() { return g_floats; }

int64_t keep_freed(int64_t floats) { return g_most_kept.exchange(floats); }

MemoryWatch::MemoryWatch() { g_live = 0, g_peak = 0, g_watched = true; }
MemoryWatch::~MemoryWatch() { g_watched = false; }
int64_t MemoryWatch::peak_floats() const { return g_peak; }

}  // namespace bary
