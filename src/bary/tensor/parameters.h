// SPDX-License-Identifier: Apache-2.0
// All parameters of a model in one flat buffer: names and shapes beside it, gradients and optimiser moments in flat
// buffers of the same layout elsewhere. Matrices are kept packed for the products that use them until they change.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bary/tensor/tensor.h"

namespace bary {

// What a parameter is for: decides weight decay and initial values.
enum class Role { matrix, bias, norm, embedding };

struct Parameter {
  std::string name;  // Hugging Face's style: transformer.h.0.attn.q_proj.weight
  Shape shape;
  int64_t offset = 0;  // in the flat buffer
  Role role = Role::matrix;
};

// Initial values: constant (std 0), normal, or uniform in [-bound, bound].
struct Init {
  enum class Kind { constant, normal, uniform } kind = Kind::constant;
  double value = 0;  // the constant, the standard deviation, or the bound
};

class Parameters {
 public:
  explicit Parameters(uint64_t seed) : seed_(seed) {}
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // Creates a parameter; its random values are keyed by (seed, name), so they do not depend on what else the model has.
  Tensor add(const std::string& name, Shape shape, Role role, Init init);
  // Several (n_i, k) matrices as one (sum n_i, k), or vectors as one: one product serves them. They must have been
  // added one after another.
  Tensor join(std::span<const Tensor> parts);

  const std::vector<Parameter>& list() const { return list_; }
  const Parameter* find(const std::string& name) const;
  int64_t count() const;                  // numbers learned
  int64_t size() const { return size_; }  // floats of the flat buffer
  float* values() const { return values_.get(); }
  std::span<float> values_of(const Parameter& p) const {
    return {values() + p.offset, static_cast<size_t>(p.shape.volume())};
  }
  uint64_t seed() const { return seed_; }

  // Called after values changed. Packed copies that were used since the last change are made again, in parallel; others
  // (a sample's, between training steps) are given up until somebody asks.
  void changed();
  // (N,K) weight packed for x W^T (transposed) or for x W; made on first use, safe from several threads.
  const float* packed(const Tensor& w, bool transposed);

 private:
  struct Packed {
    int64_t offset = 0;
    Shape shape;
    bool transposed = false;
    Buffer data;
    std::atomic<bool> fresh{false}, used{false};
    std::mutex mutex;
  };
  void grow(int64_t size);
  Packed& packed_entry(const Tensor& w, bool transposed);
  void pack(Packed& p, bool spread);

  uint64_t seed_;
  std::vector<Parameter> list_;
  std::vector<std::shared_ptr<Tensor::Node>> nodes_;
  int64_t size_ = 0, capacity_ = 0;
  std::unique_ptr<float[], void (*)(void*)> values_{nullptr, nullptr};
  std::deque<Packed> packed_;  // a deque: entries keep their address
  std::mutex packed_mutex_;
};

}  // namespace bary
