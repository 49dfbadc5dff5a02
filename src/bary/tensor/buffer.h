// SPDX-License-Identifier: Apache-2.0
// Memory of tensors: 64-byte aligned blocks from a pool that belongs to the thread that asked first. A training step
// asks for the same sizes every time, so after the first step nothing is allocated. A block freed by another thread
// goes back to its own pool.
#pragma once
#include <cstddef>
#include <cstdint>

namespace bary {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t floats);  // contents undefined
  ~Buffer();
  Buffer(Buffer&& o) noexcept;
  Buffer& operator=(Buffer&& o) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  float* data() const { return data_; }
  int64_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void release();
  float* data_ = nullptr;
  int64_t size_ = 0, capacity_ = 0;
  BufferPool* pool_ = nullptr;
};

// Floats taken from the system by all pools so far, in use or kept for reuse: flat over a run once it is warm.
int64_t pooled_floats();

// Freed memory that a thread's pool keeps for reuse, at most; beyond it, large blocks go back to the system. Returns
// what it was; 2^28 floats (1 GiB) at first.
int64_t keep_freed(int64_t floats);

// What buffers held at most while it lives, beyond what they held when it began. Of the whole process; one at a time.
class MemoryWatch {
 public:
  MemoryWatch();
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  int64_t peak_floats() const;
};

}  // namespace bary
