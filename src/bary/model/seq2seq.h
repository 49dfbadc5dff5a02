// SPDX-License-Identifier: Apache-2.0
// A model of pairs of texts: p(target | source) = product over t of p(target_t | source, target_<t). Both sides of a
// batch are padded to their longest; what a sequence gives does not depend on its neighbours or the padding, to the
// bit.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "bary/model/model.h"
#include "bary/model/pair_batch.h"

namespace bary {

class Seq2Seq : public Model {
 public:
  virtual ~Seq2Seq() = default;

  virtual Memory encode(const Padded& source, const Pass& pass = {}) const = 0;
  // Hidden rows (B,T,C) of target tokens, for pass.memory and what pass.cache holds.
  virtual Tensor decode(std::span<const int32_t> ids, int64_t B, const Pass& pass) const = 0;
  virtual KvCache make_cache(int64_t B, int64_t capacity) const = 0;
  // Room for so many positions on each side; a learned table cannot grow, and an Error says where it ends.
  virtual void ensure_positions(int64_t source, int64_t target) = 0;

  Tensor head(const Tensor& hidden) const;                             // logits of rows of decode()
  Tensor logits(const PairBatch& batch, const Pass& pass = {}) const;  // (B,T,V), teacher-forced
  LossSum loss(const PairBatch& batch, const Pass& pass = {}, const LossOptions& options = {}) const;

 protected:
  using Model::Model;
  void make_head(const Tensor& tokens);  // of its own, or the table of tokens

 private:
  Linear lm_head_;
};

std::unique_ptr<Seq2Seq> make_seq2seq(const ModelConfig& config, uint64_t seed);

}  // namespace bary
