// SPDX-License-Identifier: Apache-2.0
#include "bary/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bary/base/error.h"

namespace bary {
namespace {

constexpr int kSpins = 4000;  // some tens of microseconds

thread_local bool t_inside = false;
thread_local int t_in_order = 0;  // how many TasksInOrder live
thread_local int t_worker = 0;    // kept in nested loops, so that scratch named by worker is never shared

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Workers spin a little before they sleep: a training step hands out work every few milliseconds.
class Pool {
 public:
  explicit Pool(int n) : size_(n) {
    try {
      for (int t = 1; t < n; ++t) workers_.emplace_back([this, t] { work(t); });
    } catch (const std::exception& e) {  // the destructor of a half-built pool does not run
      const size_t started = workers_.size() + 1;
      stop();
      fail(ErrorKind::system, "threads: {} were asked for and the system started {} ({}); ask for fewer", n, started,
           e.what());
    }
  }
  ~Pool() { stop(); }
  int size() const { return size_; }

  void run(const std::function<void(int)>& body) {
    std::lock_guard lock(one_loop_at_a_time_);
    body_ = &body;
    error_ = nullptr;
    left_.store(size_ - 1, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    call(0);
    for (int spin = 0; left_.load(std::memory_order_acquire) > 0; ++spin) {
      // On a busy machine the last worker may be waiting for this very core.
      spin < kSpins ? pause_briefly() : std::this_thread::yield();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void call(int worker) {
    t_inside = true;
    t_worker = worker;
    try {
      (*body_)(worker);
    } catch (...) {
      std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    t_inside = false;
  }
  void work(int worker) {
    FlushDenormals flush;
    uint32_t seen = 0;
    for (;;) {
      for (int spin = 0; generation_.load(std::memory_order_acquire) == seen; ++spin) {
        pause_briefly();
        if (spin > kSpins) generation_.wait(seen, std::memory_order_acquire);
      }
      ++seen;
      if (stop_) return;
      call(worker);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  void stop() {
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    for (auto& w : workers_) w.join();
  }

  int size_;
  std::vector<std::thread> workers_;
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> left_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* body_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_, one_loop_at_a_time_;
};

std::mutex g_mutex;
std::unique_ptr<Pool> g_pool;

Pool& pool() {
  std::lock_guard lock(g_mutex);
  if (!g_pool) g_pool = std::make_unique<Pool>(available_cores());
  return *g_pool;
}

void run_tasks(int64_t n, bool in_order, const std::function<void(int64_t, int)>& body) {
  if (n <= 0) return;
  FlushDenormals flush;
  if (in_order || t_inside || n == 1 || threads() == 1) {
    for (int64_t i = 0; i < n; ++i) body(i, t_worker);
    return;
  }
  std::atomic<int64_t> next{0};
  pool().run([&](int worker) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i, worker);
  });
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

int threads() { return pool().size(); }

void set_threads(int n) {
  BARY_CHECK(n >= 0 && n <= 1024, "set_threads: got {}, expected 1 to 1024 (or 0 for every core)", n);
  BARY_CHECK(!t_inside, "set_threads: called from inside a parallel loop; call it before the loop");
  if (n == 0) n = available_cores();
  std::lock_guard lock(g_mutex);
  if (g_pool && g_pool->size() == n) return;
  g_pool = std::make_unique<Pool>(n);  // the pool before it goes once this one stands
}

bool inside_parallel() { return t_inside; }

TasksInOrder::TasksInOrder() { ++t_in_order; }
TasksInOrder::~TasksInOrder() { --t_in_order; }

void parallel_tasks(int64_t n, const std::function<void(int64_t, int)>& body) { run_tasks(n, t_in_order > 0, body); }

void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  grain = std::max<int64_t>(grain, 1);
  if (t_inside || n <= grain) {
    FlushDenormals flush;
    if (n > 0) body(0, n);
    return;
  }
  run_tasks((n + grain - 1) / grain, false, [&](int64_t i, int) { body(i * grain, std::min(n, (i + 1) * grain)); });
}

FlushDenormals::FlushDenormals() : saved_(0) {
#if defined(__x86_64__)
  saved_ = _mm_getcsr();
  if ((saved_ & 0x8040) != 0x8040) _mm_setcsr(static_cast<uint32_t>(saved_) | 0x8040);
#elif defined(__aarch64__)
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" ::"r"(saved_ | (1ull << 24)));
#endif
}
FlushDenormals::~FlushDenormals() {
#if defined(__x86_64__)
  if ((saved_ & 0x8040) != 0x8040) _mm_setcsr(static_cast<uint32_t>(saved_));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(saved_));
#endif
}

}  // namespace bary
