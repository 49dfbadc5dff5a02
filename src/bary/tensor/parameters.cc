// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/parameters.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/target.h"

namespace bary {
namespace {

uint64_t name_key(const std::string& name) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : name) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

void fill(std::span<float> values, Init init, uint64_t seed, uint64_t key) {
  if (init.kind == Init::Kind::constant) return std::fill(values.begin(), values.end(), static_cast<float>(init.value));
  constexpr int64_t kChunk = 1 << 14;  // a stream each, so that large tables fill in parallel with the same values
  parallel_for(static_cast<int64_t>(values.size()), kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; chunk += kChunk) {
      RandomStream random(seed, Purpose::init, static_cast<uint64_t>(chunk / kChunk), key);
      for (int64_t i = chunk; i < std::min(chunk + kChunk, end); ++i) {
        double x =
            init.kind == Init::Kind::normal ? random.normal() * init.value : random.uniform(-init.value, init.value);
        values[static_cast<size_t>(i)] = static_cast<float>(x);
      }
    }
  });
}

}  // namespace

Tensor Parameters::add(const std::string& name, Shape shape, Role role, Init init) {
  BARY_CHECK(!find(name), "parameter {}: the name is taken; give the second one another path", name);
  kernel::apply_isa_from_environment();
  Parameter p{name, shape, size_, role};
  grow(size_ + shape.volume());  // no gaps, so that neighbours can be joined
  list_.push_back(p);
  Tensor t;
  t.node_ = std::make_shared<Tensor::Node>();
  t.node_->shape = shape;
  t.node_->stride = shape.channels();
  t.node_->needs_grad = true;
  t.node_->owner = this;
  t.node_->offset = p.offset;
  t.node_->data = values() + p.offset;
  nodes_.push_back(t.node_);
  fill(values_of(p), init, seed_, name_key(name));
  return t;
}

void Parameters::grow(int64_t size) {
  if (size > capacity_) {
    int64_t capacity = std::max(size, capacity_ * 2);
    capacity = (capacity + 1023) / 1024 * 1024;
    constexpr size_t kHugePage = 2 << 20;
    const size_t bytes = static_cast<size_t>(capacity) * 4, alignment = bytes < kHugePage ? 64 : kHugePage;
    auto* p = static_cast<float*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
    if (p && bytes >= kHugePage) madvise(p, bytes, MADV_HUGEPAGE);
    BARY_CHECK(p != nullptr, ErrorKind::system, "out of memory: the parameters need {} MB; choose a smaller model",
               capacity * 4 >> 20);
    std::fill(p, p + capacity, 0.0f);
    if (size_ > 0) std::memcpy(p, values(), static_cast<size_t>(size_) * 4);
    values_ = {p, std::free};
    capacity_ = capacity;
    for (auto& node : nodes_) node->data = p + node->offset;
  }
  size_ = size;
}

Tensor Parameters::join(std::span<const Tensor> parts) {
  BARY_CHECK(!parts.empty(), "join: no parameters given");
  const bool vectors = parts[0].shape().rank() == 1;
  const int64_t k = vectors ? 1 : parts[0].channels();
  int64_t rows = 0;
  for (const Tensor& p : parts) {
    BARY_CHECK(p.owner() == this && p.shape().rank() == parts[0].shape().rank() && (vectors || p.channels() == k) &&
                   p.parameter_offset() == parts[0].parameter_offset() + rows * k,
               "join: parameter of shape {} does not follow its neighbour; add them one after another",
               p.shape().str());
    rows += p.shape()[0];
  }
  Tensor t;
  t.node_ = std::make_shared<Tensor::Node>();
  t.node_->shape = vectors ? Shape{rows} : Shape{rows, k};
  t.node_->stride = t.node_->shape.channels();
  t.node_->needs_grad = true;
  t.node_->owner = this;
  t.node_->offset = parts[0].parameter_offset();
  t.node_->data = values() + t.node_->offset;
  nodes_.push_back(t.node_);
  return t;
}

const Parameter* Parameters::find(const std::string& name) const {
  for (const Parameter& p : list_)
    if (p.name == name) return &p;
  return nullptr;
}

int64_t Parameters::count() const {
  int64_t n = 0;
  for (const Parameter& p : list_) n += p.shape.volume();
  return n;
}

void Parameters::pack(Packed& p, bool spread) {
  const int64_t n = p.shape[0], k = p.shape[1], width = kernel::panel_width();
  const float* w = values() + p.offset;
  const int64_t columns = p.transposed ? n : k, depth = p.transposed ? k : n;
  if (!p.data) p.data = Buffer(kernel::packed_size(columns, depth));
  auto part = [&](int64_t b, int64_t e) {
    if (p.transposed) {
      kernel::pack_transposed(w + b * k, e - b, k, k, p.data.data() + b * depth);
    } else {
      kernel::pack(w + b, n, e - b, k, p.data.data() + b * depth);
    }
  };
  if (!spread) return part(0, columns);
  parallel_for(columns, std::max<int64_t>(width, (int64_t{1} << 16) / std::max<int64_t>(depth, 1) / width * width),
               part);
}

Parameters::Packed& Parameters::packed_entry(const Tensor& w, bool transposed) {
  std::lock_guard lock(packed_mutex_);
  for (Packed& p : packed_)
    if (p.offset == w.parameter_offset() && p.transposed == transposed && p.shape == w.shape()) return p;
  Packed& p = packed_.emplace_back();
  p.offset = w.parameter_offset();
  p.shape = w.shape();
  p.transposed = transposed;
  return p;
}

const float* Parameters::packed(const Tensor& w, bool transposed) {
  Packed& p = packed_entry(w, transposed);
  if (!p.used.load(std::memory_order_relaxed)) p.used.store(true, std::memory_order_relaxed);
  if (!p.fresh.load(std::memory_order_acquire)) {
    std::lock_guard lock(p.mutex);
    if (!p.fresh.load(std::memory_order_relaxed)) {
      // not spread over threads: another thread's loop may hold the pool and wait for this entry
      pack(p, false);
      p.fresh.store(true, std::memory_order_release);
    }
  }
  return p.data.data();
}

void Parameters::changed() {
  std::lock_guard lock(packed_mutex_);
  for (Packed& p : packed_) {
    const bool wanted = p.used.exchange(false);
    if (wanted) {
      pack(p, true);
    } else {
      p.data = Buffer();
    }
    p.fresh.store(wanted, std::memory_order_release);
  }
}

}  // namespace bary
