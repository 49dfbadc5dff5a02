// SPDX-License-Identifier: Apache-2.0
#include "allocation_watch.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace bary::fuzz {
namespace {

std::atomic<bool> g_watching{false};
std::atomic<size_t> g_largest{0};

void* take(size_t size, size_t alignment) {
  if (g_watching.load(std::memory_order_relaxed)) {
    size_t before = g_largest.load(std::memory_order_relaxed);
    while (before < size && !g_largest.compare_exchange_weak(before, size, std::memory_order_relaxed)) {
    }
    if (size > kRefused) return nullptr;
  }
  size = std::max<size_t>(size, 1);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  const size_t padded = (size + alignment - 1) / alignment * alignment;
  return padded < size ? nullptr : std::aligned_alloc(alignment, padded);
}

void* take_or_throw(size_t size, size_t alignment) {
  if (void* memory = take(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

AllocationWatch::AllocationWatch() {
  g_largest = 0;
  g_watching = true;
}
AllocationWatch::~AllocationWatch() { g_watching = false; }
size_t AllocationWatch::largest() const { return g_largest; }

}  // namespace bary::fuzz

// All forms, so that a sanitizer's own never meets half a pair of ours.
using bary::fuzz::take;
using bary::fuzz::take_or_throw;
void* operator new(size_t size) { return take_or_throw(size, 1); }
void* operator new[](size_t size) { return take_or_throw(size, 1); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take(size, 1); }
void* operator new(size_t size, std::align_val_t a) { return take_or_throw(size, static_cast<size_t>(a)); }
void* operator new[](size_t size, std::align_val_t a) { return take_or_throw(size, static_cast<size_t>(a)); }
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return take(size, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { std::free(p); }
