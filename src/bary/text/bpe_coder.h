// SPDX-License-Identifier: Apache-2.0
// Applies learned merges: in each piece the pair of lowest rank is joined, the leftmost first, until none is left.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bary/text/pair_table.h"
#include "bary/text/pretokenize.h"
#include "bary/text/token_chain.h"
#include "bary/text/token_store.h"

namespace bary {

struct BpeMerge {
  int32_t left = 0, right = 0, result = 0;
};

// Where encoded ids go: kept in order, or only counted.
class IdSink {
 public:
  explicit IdSink(bool keep) : keep_(keep) {}

  void put(int32_t id) { put(&id, 1); }
  void put(const int32_t* ids, size_t n) {
    if (keep_) {
      reserve(n);
      std::copy_n(ids, n, ids_.data() + size_);
    }
    size_ += n;
  }
  // The same for n <= 4 ids in an array of four, all of which may be read: one store instead of a loop.
  void put_of_four(const int32_t* ids, size_t n) {
    if (keep_) {
      reserve(4);
      std::copy_n(ids, 4, ids_.data() + size_);
    }
    size_ += n;
  }
  void put(IdSink&& other) {
    if (other.keep_)
      put(other.ids_.data(), other.size_);
    else
      size_ += other.size_;
  }
  size_t size() const { return size_; }
  bool keeps() const { return keep_; }
  std::vector<int32_t> take() {
    ids_.resize(keep_ ? size_ : 0);
    return std::move(ids_);
  }

 private:
  void reserve(size_t n) {
    if (size_ + n > ids_.size()) ids_.resize(2 * ids_.size() + n + 60);
  }
  bool keep_;
  size_t size_ = 0;
  std::vector<int32_t> ids_;
};

// One step of a piece's coding: tokens `at` and `at + 1` of the list so far became `merge`.result.
struct BpeMergeStep {
  int32_t rank = -1;
  size_t at = 0;
  BpeMerge merge;
};

class PieceCache;

// What earlier texts left for the next: one cache for each thread that encodes at once, two megabytes at most each.
// What a cache holds decides about time only, never about ids.
class IdlePieceCaches {
 public:
  IdlePieceCaches();
  ~IdlePieceCaches();
  std::unique_ptr<PieceCache> take(size_t text_size);  // null for a text too short to repeat itself, where none is idle
  void give(std::unique_ptr<PieceCache> cache);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<PieceCache>> idle_;
};

// Immutable after construction, the caches of pieces aside, and safe to use from several threads.
class BpeCoder {
 public:
  // byte_ids[b] is the id of the single byte b. Merges in order of rank; of equal pairs the first counts.
  // whole_first: a piece that is a token is that token, whatever the merges would make of it ("ignore_merges").
  BpeCoder(const TokenStore& tokens, const std::array<int32_t, 256>& byte_ids, std::span<const BpeMerge> merges,
           bool whole_first);

  // Cuts the text by the pattern and codes each piece. O(n log n) at worst, without recursion, whatever the text.
  void encode(const TokenStore& tokens, Pattern pattern, std::string_view text, IdSink& sink) const;
  void encode_piece(const TokenStore& tokens, std::string_view piece, IdSink& sink) const;

  // The merges of one piece, in the order in which they happen.
  std::vector<BpeMergeStep> explain(std::string_view piece) const;

 private:
  struct Rank {
    int32_t rank = -1;
    int32_t result = -1;
  };
  void encode_cached(const TokenStore& tokens, Pattern pattern, std::string_view text, PieceCache& cache,
                     IdSink& sink) const;
  static constexpr size_t kShort = 48;  // bytes up to which scanning for the lowest rank beats a queue
  size_t code_short(std::string_view piece, int32_t* ids) const;  // at most kShort bytes; how many ids came out
  size_t code_short_or_whole(const TokenStore& tokens, std::string_view piece, int32_t* ids) const;
  void encode_long(std::string_view piece, IdSink& sink) const;
  std::vector<int32_t> encode_window(std::string_view text) const;
  size_t length(int32_t id) const { return static_cast<size_t>(length_[static_cast<size_t>(id)]); }
  void join_by_heap(TokenChain& chain) const;
  void join_by_rank(TokenChain& chain) const;
  int32_t rank_of(int32_t left, int32_t right) const {
    const Rank* rank = pairs_.find(left, right);
    return rank == nullptr ? -1 : rank->rank;
  }

  std::array<int32_t, 256> byte_ids_;
  std::vector<BpeMerge> merges_;
  PairTable<Rank> pairs_;
  std::vector<int32_t> byte_ranks_;  // of the pair of bytes a, b at 256 a + b, or -1: those of a text stay in a cache
  TokenIndex whole_;                 // the tokens that a piece of their bytes becomes
  std::vector<int32_t> length_;
  bool whole_first_;
  mutable IdlePieceCaches caches_;
  bool in_order_ = true;  // every merge ranks after those that make its parts
};

}  // namespace bary
