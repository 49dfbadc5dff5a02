// SPDX-License-Identifier: Apache-2.0
#include "bary/bench/attention.h"

#include <sys/resource.h>

#include <algorithm>

#include "bary/base/clock.h"
#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/tensor/tape.h"

namespace bary {
namespace {

int64_t most_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

AttentionBench::AttentionBench(int64_t heads, int64_t width, int64_t T, AttentionPath path, uint64_t seed)
    : path_(path), T_(T), width_(width), before_(most_memory()) {
  options_.heads = heads;
  auto random_tensor = [&](int64_t channels, uint64_t which) {
    Tensor t(Shape{1, T, channels});
    parallel_for(T, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        RandomStream random(seed, Purpose::test, static_cast<uint64_t>(r), which);
        for (int64_t c = 0; c < channels; ++c) t.row(r)[c] = static_cast<float>(random.normal());
      }
    });
    return t;
  };
  qkv_ = random_tensor(3 * heads * width, 0);
  upstream_ = random_tensor(heads * width, 1);
}

double AttentionBench::run_one() {
  Tensor input(qkv_.shape());  // of its own: a gradient is added to what an earlier run left
  std::copy_n(qkv_.data(), qkv_.rows() * qkv_.stride(), input.data());
  input.require_grad();
  Stopwatch watch;
  Tape tape;
  Tensor y = path_ == AttentionPath::tiled ? attention(input, options_) : attention_by_definition(input, options_);
  Tensor loss = Tensor::zeros({1});
  record(
      loss,
      [y, upstream = upstream_] {  // the gradient that comes from above
        const auto slot = y.grad();
        for (int64_t r = 0; r < y.rows(); ++r) std::copy_n(upstream.row(r), y.channels(), slot.data + r * slot.stride);
      },
      y);
  tape.backward(loss);
  return watch.seconds();
}

double AttentionBench::flops() const {
  const double T = static_cast<double>(T_), pairs = T * (T + 1) / 2;
  return 7 * 2 * pairs * static_cast<double>(options_.heads * width_);
}

int64_t AttentionBench::extra_bytes() const {
  // queries, keys and values twice (run_one) and their gradient; the output, its gradient, and what that is copied from
  const int64_t known = T_ * (3 * qkv_.stride() + 3 * upstream_.stride());
  return most_memory() - before_ - known * 4;
}

}  // namespace bary
