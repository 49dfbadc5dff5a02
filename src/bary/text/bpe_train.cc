// SPDX-License-Identifier: Apache-2.0
#include "bary/text/bpe_train.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <utility>

#include "bary/base/error.h"
#include "bary/text/byte_map.h"
#include "bary/text/pair_table.h"
#include "bary/text/token_chain.h"

namespace bary {
namespace {

// The places of a pair are all made in the step that makes its newer member, from left to right; afterwards it only
// loses some. So its list of places is sorted and append-only, its count only falls and its first place only moves
// right: an entry of the heap is never too low, and a heap that checks the entry it pops ("lazy") is exact.
struct Pair {
  int32_t left = 0, right = 0;
  int64_t count = 0;
  int64_t tallied = 0;          // count as the tally of counts has it
  std::vector<uint32_t> where;  // where `left` begins; stale places stay in it
  size_t first = 0;             // places before this one are known to be stale
  bool touched = false;         // in this step
};

struct HeapEntry {
  int64_t count;
  uint64_t key;  // the smaller wins a tie
  int32_t pair;
};

class Trainer {
 public:
  Trainer(std::span<const CountedPiece> pieces, const BpeOptions& options) : options_(options) {
    for (int b = 0; b < 256; ++b) {
      length_.push_back(1);
      bytes_.emplace_back(1, static_cast<char>(b));
      byte_rank_[static_cast<size_t>(b)] = printable_rank(static_cast<uint8_t>(b));
    }
    load(pieces);
    for (size_t i = 0; i < pairs_.size(); ++i) enter(static_cast<int32_t>(i));
  }

  void run(int64_t wanted, BpeTraining& result) {
    while (static_cast<int64_t>(result.steps.size()) < wanted) {
      const int32_t best = pop_best();
      if (best < 0) {
        result.note = stop_note(static_cast<int64_t>(result.steps.size()), wanted);
        break;
      }
      const Pair& pair = pairs_[static_cast<size_t>(best)];
      BpeStep step{pair.left, pair.right, pair.count, tally_[pair.count], 0};
      merge(best);
      step.tokens = tokens_;
      result.steps.push_back(step);
      if (options_.progress) options_.progress(static_cast<int64_t>(result.steps.size()), wanted);
    }
    result.tokens = tokens_;
  }

 private:
  // A byte's place in the order of the printable characters.
  static uint32_t printable_rank(uint8_t byte) {
    uint32_t rank = 0;
    for (int other = 0; other < 256; ++other)
      rank += printable_of_byte(static_cast<uint8_t>(other)) < printable_of_byte(byte);
    return rank;
  }

  void load(std::span<const CountedPiece> pieces) {
    uint64_t size = 1;
    for (const CountedPiece& piece : pieces) size += piece.bytes.size() + 1;
    BARY_CHECK(
        size < std::numeric_limits<uint32_t>::max(),
        "train: the distinct pieces have {} bytes, at most {} can be handled; train on less text or with a pattern "
        "that cuts it",
        size, std::numeric_limits<uint32_t>::max());
    chain_.reserve(size);
    piece_of_.reserve(size);
    piece_of_.push_back(0);
    for (const CountedPiece& piece : pieces) {
      BARY_CHECK(piece.count >= 0, "train: a piece has the count {}; counts are not negative", piece.count);
      if (piece.count == 0) continue;
      const auto number = static_cast<uint32_t>(weight_.size());
      weight_.push_back(piece.count);
      tokens_ += piece.count * static_cast<int64_t>(piece.bytes.size());
      for (size_t i = 0; i < piece.bytes.size(); ++i) {
        const auto id = static_cast<int32_t>(static_cast<uint8_t>(piece.bytes[i]));
        if (i > 0) add_place(chain_.at(chain_.size() - 1), id, chain_.size() - 1, piece.count);
        chain_.append(id);
        piece_of_.push_back(number);
      }
      chain_.append_edge();
      piece_of_.push_back(number);
    }
  }

  void add_place(int32_t left, int32_t right, size_t position, int64_t weight) {
    const int32_t pair = index_.insert(left, right, static_cast<int32_t>(pairs_.size()));
    if (static_cast<size_t>(pair) == pairs_.size()) pairs_.emplace_back().left = left, pairs_.back().right = right;
    pairs_[static_cast<size_t>(pair)].count += weight;
    pairs_[static_cast<size_t>(pair)].where.push_back(static_cast<uint32_t>(position));
  }

  // A new pair whose count is known takes part from now on, unless it can never be joined.
  void enter(int32_t number) {
    Pair& pair = pairs_[static_cast<size_t>(number)];
    const size_t size = chain_.length(pair.left) + chain_.length(pair.right);
    const bool too_long = options_.max_token_length > 0 && size > static_cast<size_t>(options_.max_token_length);
    if (too_long || pair.count < options_.min_frequency) {
      pair.tallied = -1;
      std::vector<uint32_t>().swap(pair.where);
      return;
    }
    pair.tallied = pair.count;
    ++tally_[pair.count];
    push({pair.count, key_of(pair), number});
  }

  uint64_t first_place(Pair& pair) const {
    while (!chain_.stands(pair.where[pair.first], pair.left, pair.right)) ++pair.first;
    return pair.where[pair.first];
  }
  uint64_t rank(int32_t id) const { return id < 256 ? byte_rank_[static_cast<size_t>(id)] : static_cast<uint64_t>(id); }
  uint64_t key_of(Pair& pair) const {
    if (options_.ties == TieRule::first) return first_place(pair);
    return options_.ties == TieRule::hf ? rank(pair.left) << 32 | rank(pair.right) : 0;
  }

  // Does b come before a?
  bool later(const HeapEntry& a, const HeapEntry& b) const {
    if (a.count != b.count) return a.count < b.count;
    if (options_.ties != TieRule::bytes) return a.key > b.key;
    const Pair &pa = pairs_[static_cast<size_t>(a.pair)], &pb = pairs_[static_cast<size_t>(b.pair)];
    const int left = text(pa.left).compare(text(pb.left));
    return left != 0 ? left > 0 : text(pa.right) > text(pb.right);
  }
  const std::string& text(int32_t id) const { return bytes_[static_cast<size_t>(id)]; }
  auto order() const {
    return [this](const HeapEntry& a, const HeapEntry& b) { return later(a, b); };
  }
  void push(HeapEntry entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), order());
  }

  int32_t pop_best() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), order());
      const HeapEntry entry = heap_.back();
      heap_.pop_back();
      Pair& pair = pairs_[static_cast<size_t>(entry.pair)];
      if (pair.count < options_.min_frequency) continue;  // dropped: it can't come back
      const HeapEntry now{pair.count, key_of(pair), entry.pair};
      if (now.count == entry.count && now.key == entry.key) return entry.pair;
      push(now);
    }
    return -1;
  }

  void lose(int32_t left, int32_t right, int64_t weight) {
    // Only on the left can a token of this step stand already.
    const int32_t number = left == merged_ ? right_of_[static_cast<size_t>(right)] : *index_.find(left, right);
    Pair& pair = pairs_[static_cast<size_t>(number)];
    pair.count -= weight;
    if (!pair.touched) pair.touched = true, touched_.push_back(number);
  }

  void gain(int32_t& number, int32_t left, int32_t right, size_t position, int64_t weight) {
    if (number < 0) {
      number = static_cast<int32_t>(pairs_.size());
      pairs_.emplace_back().left = left, pairs_.back().right = right;
    }
    pairs_[static_cast<size_t>(number)].count += weight;
    pairs_[static_cast<size_t>(number)].where.push_back(static_cast<uint32_t>(position));
  }

  void merge(int32_t number) {
    const int32_t left = pairs_[static_cast<size_t>(number)].left, right = pairs_[static_cast<size_t>(number)].right;
    const std::vector<uint32_t> where = std::move(pairs_[static_cast<size_t>(number)].where);
    merged_ = static_cast<int32_t>(length_.size());
    length_.push_back(length_[static_cast<size_t>(left)] + length_[static_cast<size_t>(right)]);
    if (options_.ties == TieRule::bytes) bytes_.push_back(text(left) + text(right));
    left_of_.resize(length_.size(), -1);
    right_of_.resize(length_.size(), -1);
    const size_t old_pairs = pairs_.size();
    for (const uint32_t position : where)
      if (chain_.stands(position, left, right)) join(position, left, right);
    settle(number, old_pairs);
  }

  void join(size_t position, int32_t left, int32_t right) {
    const int64_t weight = weight_[piece_of_[position]];
    const int32_t before = chain_.before(position);
    const int32_t after = chain_.after(position + chain_.length(left));
    if (before >= 0) lose(before, left, weight);
    if (after >= 0) lose(right, after, weight);
    chain_.join(position, left, right, merged_);
    tokens_ -= weight;
    if (before >= 0) {
      int32_t& pair = before == merged_ ? both_ : left_of_[static_cast<size_t>(before)];
      gain(pair, before, merged_, position - chain_.length(before), weight);
    }
    if (after >= 0) gain(right_of_[static_cast<size_t>(after)], merged_, after, position, weight);
  }

  // After a step: the tally follows the counts that fell, and the new pairs enter.
  void settle(int32_t joined, size_t old_pairs) {
    pairs_[static_cast<size_t>(joined)].count = 0;
    if (!std::exchange(pairs_[static_cast<size_t>(joined)].touched, true)) touched_.push_back(joined);
    for (const int32_t number : touched_) {
      Pair& pair = pairs_[static_cast<size_t>(number)];
      pair.touched = false;
      if (static_cast<size_t>(number) >= old_pairs || pair.tallied < 0) continue;
      if (--tally_[pair.tallied] == 0) tally_.erase(pair.tallied);
      pair.tallied = pair.count;
      if (pair.count > 0)
        ++tally_[pair.count];
      else
        pair.tallied = -1, std::vector<uint32_t>().swap(pair.where);
    }
    touched_.clear();
    for (size_t i = old_pairs; i < pairs_.size(); ++i) {
      const int32_t left = pairs_[i].left, right = pairs_[i].right;
      left_of_[static_cast<size_t>(left)] = right_of_[static_cast<size_t>(right)] = -1;
      index_.insert(left, right, static_cast<int32_t>(i));
      enter(static_cast<int32_t>(i));
    }
    both_ = -1;
  }

  std::string stop_note(int64_t done, int64_t wanted) const {
    std::string limits;
    if (options_.min_frequency > 1) limits += fmt::format(" that occurs {} times", options_.min_frequency);
    if (options_.max_token_length > 0) limits += fmt::format(" within {} bytes", options_.max_token_length);
    return fmt::format("learned {} of {} merges: no pair of neighbouring tokens is left{}", done, wanted, limits);
  }

  const BpeOptions& options_;
  std::vector<int32_t> length_;     // of each token, in bytes
  std::vector<std::string> bytes_;  // of each token, where the tie rule needs them
  std::array<uint32_t, 256> byte_rank_{};
  TokenChain chain_{length_};       // all distinct pieces, an edge after each
  std::vector<uint32_t> piece_of_;  // for each position of the chain
  std::vector<int64_t> weight_;     // for each piece: how often it occurs
  int64_t tokens_ = 0;
  std::vector<Pair> pairs_;
  PairTable<int32_t> index_;
  std::vector<HeapEntry> heap_;
  std::unordered_map<int64_t, int64_t> tally_;  // how many pairs have a count
  // Of the step under way: the token it makes and the pairs made with it.
  int32_t merged_ = -1;
  std::vector<int32_t> left_of_, right_of_;  // by the other token: it stands left, right of merged_
  int32_t both_ = -1;
  std::vector<int32_t> touched_;
};

}  // namespace

std::string_view tie_rule_name(TieRule rule) {
  return rule == TieRule::first ? "first" : rule == TieRule::hf ? "hf" : "bytes";
}

std::optional<TieRule> tie_rule_named(std::string_view name) {
  for (TieRule rule : {TieRule::first, TieRule::hf, TieRule::bytes})
    if (name == tie_rule_name(rule)) return rule;
  return std::nullopt;
}

BpeTraining train_bpe_counts(std::span<const CountedPiece> pieces, const BpeOptions& options) {
  const int64_t wanted = int64_t{options.vocab_size} - 256 - static_cast<int64_t>(options.specials.size());
  BARY_CHECK(wanted >= 0,
             "train: vocab_size is {} but 256 bytes and {} special tokens need at least {}; choose a larger vocabulary",
             options.vocab_size, options.specials.size(), 256 + options.specials.size());
  BARY_CHECK(options.min_frequency >= 1, "train: min_frequency is {}; it must be at least 1", options.min_frequency);
  BARY_CHECK(options.max_token_length >= 0, "train: max_token_length is {}; give bytes, or 0 for no limit",
             options.max_token_length);
  BpeTraining result;
  for (const CountedPiece& piece : pieces) {
    result.bytes += piece.count * static_cast<int64_t>(piece.bytes.size());
    result.pieces += piece.count;
  }
  result.distinct_pieces = static_cast<int64_t>(pieces.size());
  Trainer(pieces, options).run(wanted, result);
  return result;
}

BpeTraining train_bpe(std::span<const std::string_view> documents, const BpeOptions& options) {
  const PieceCounts counts = count_pieces(documents, options.pattern, options.specials);
  return train_bpe_counts(counts.pieces, options);
}

}  // namespace bary
