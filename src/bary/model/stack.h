// SPDX-License-Identifier: Apache-2.0
// One stack of blocks with its tokens and positions: a decoder-only or encoder-only model without its head, or one side
// of an encoder-decoder.
//   x = E[id] (sqrt(C)) (+ P[t]);  dropout;  x = block_i(x);  norm(x)                                (B,T) -> (B,T,C)
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "bary/model/config.h"

namespace bary {

struct StackSide {  // what differs between the sides of one model
  int64_t vocab_size = 0, n_layer = 0;
  Mask mask = Mask::causal;
  bool cross = false;
  int64_t first_layer = 0;         // names its dropout sites apart from those of another stack
  const char* layers = "blocks.";  // taps of layer i: "blocks.i..."; "" after "encoder": "encoder.i..."
  Tensor tokens = {};              // another stack's table, if they share one
};

class Stack {
 public:
  Stack(const Scope& s, const ModelConfig& c, const StackSide& side);

  // B sequences of one length, side by side in `ids`, padded where pass.lengths says so.
  Tensor operator()(std::span<const int32_t> ids, int64_t B, const Pass& pass) const;
  KvCache make_cache(int64_t B, int64_t capacity) const;
  // Makes room for positions 0 .. n-1. A table of learned positions cannot grow: an Error says where it ends. Positions
  // that are computed can, whatever the results are worth beyond the window trained on; a pass under way in another
  // thread goes on with the table it began with.
  void ensure_positions(int64_t n);
  const Tensor& tokens() const { return wte_.weight; }

 private:
  struct Tables {  // of positions that are computed; replaced as a whole
    Tensor sinusoids;
    std::shared_ptr<const RotaryTable> rotary;
  };
  struct Guarded {
    std::mutex mutex;
    Tables tables;
  };
  Tables tables() const;
  void check(const Pass& pass, int64_t T) const;
  Tensor embed(std::span<const int32_t> ids, int64_t B, const Pass& pass, const Tensor& sinusoids) const;

  ModelConfig config_;
  StackSide side_;
  std::string hook_;
  Embedding wte_, wpe_;
  std::unique_ptr<Guarded> guarded_ = std::make_unique<Guarded>();
  std::vector<Block> blocks_;
  Norm ln_f_;
};

}  // namespace bary
