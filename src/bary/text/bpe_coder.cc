// SPDX-License-Identifier: Apache-2.0
#include "bary/text/bpe_coder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <queue>

#include "bary/base/error.h"
#include "bary/text/token_chain.h"

namespace bary {
namespace {

constexpr size_t kWindow = 16384;  // bytes of a long piece that are coded at a time
constexpr size_t kOverlap = 1024;
constexpr size_t kByRank = 4096;  // bytes from which a list per rank beats a heap
constexpr uint32_t kNoKey = 0xFFFFFFFF;

}  // namespace

// The last pieces and their ids, so that a frequent word is coded once: two places per hash in one cache line, the one
// used last in front. For short pieces, which is nearly all of any text.
class PieceCache {
 public:
  struct Key {
    uint64_t low, high;  // the bytes; the highest byte holds the length
  };
  static constexpr size_t kLongest = 15;  // bytes of a piece
  static constexpr size_t kInline = 4;    // ids kept beside it
  struct Entry {
    uint64_t low = 0, high = 0;  // as in Key, and the number of ids in the top four bits
    std::array<int32_t, kInline> ids{};
  };
  struct alignas(64) Row {
    Entry front, back;
  };

  // About one place for each 32 bytes of text; none for a text too short to repeat itself.
  explicit PieceCache(size_t text_size) : rows_(rows_for(text_size)), shift_(64 - std::countr_zero(rows_.size())) {}
  static size_t rows_for(size_t text_size) {
    return text_size < 2048 ? 0 : std::bit_floor(std::clamp<size_t>(text_size / 64, 32, 16384));
  }
  size_t rows() const { return rows_.size(); }
  bool full() const { return pool_.size() + kLongest > kPool; }

  // `end` is where memory that may be read ends.
  static Key key_of(std::string_view piece, const char* end) {
    Key key{0, 0};
    const size_t size = piece.size();
    if (end - piece.data() >= 16) {
      std::memcpy(&key, piece.data(), 16);
      key.low &= ~uint64_t{0} >> (size >= 8 ? 0 : 64 - 8 * size);
      key.high &= size <= 8 ? 0 : ~uint64_t{0} >> (128 - 8 * size);
    } else {
      std::memcpy(&key, piece.data(), size);
    }
    key.high |= uint64_t{size} << 56;
    return key;
  }

  // Where the piece belongs. A row is far away in memory: ask for it well before find and insert.
  Row* row(Key key) {
    const uint64_t hash = (key.low ^ std::rotl(key.high * 0xD6E8FEB86659FD93, 32)) * 0x9E3779B97F4A7C15;
    Row* const row = &rows_[static_cast<size_t>(hash >> shift_)];
    __builtin_prefetch(row, 1);
    return row;
  }

  // Puts the ids of the piece into the sink; false where it is not known.
  bool find(Row& row, Key key, IdSink& sink) const {
    auto& [front, back] = row;
    if (!is(front, key)) {
      if (!is(back, key)) return false;
      std::swap(front, back);
    }
    const size_t n = front.high >> 60;
    if (n <= kInline)
      sink.put_of_four(front.ids.data(), n);
    else
      sink.put(pool_.data() + front.ids[0], n);
    return true;
  }

  // n <= kLongest, as a piece has at most one id per byte.
  void insert(Row& row, Key key, const int32_t* ids, size_t n) {
    Entry entry{key.low, key.high | uint64_t{n} << 60, {}};
    if (n <= kInline) {
      std::copy_n(ids, n, entry.ids.data());
    } else {
      if (pool_.size() + n > kPool) return;
      entry.ids[0] = static_cast<int32_t>(pool_.size());
      pool_.insert(pool_.end(), ids, ids + n);
    }
    row.back = row.front;
    row.front = entry;
  }

 private:
  static constexpr size_t kPool = 1 << 18;  // ids of pieces with many; when it is full, no more are taken
  static bool is(const Entry& entry, Key key) {
    return entry.low == key.low && (entry.high & ~(uint64_t{15} << 60)) == key.high;
  }

  std::vector<Row> rows_;
  int shift_;
  std::vector<int32_t> pool_;
};

IdlePieceCaches::IdlePieceCaches() = default;
IdlePieceCaches::~IdlePieceCaches() = default;

std::unique_ptr<PieceCache> IdlePieceCaches::take(size_t text_size) {
  std::unique_ptr<PieceCache> cache;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) cache = std::move(idle_.back()), idle_.pop_back();
  }
  const size_t rows = PieceCache::rows_for(text_size);
  if (rows > (cache ? cache->rows() : 0)) cache = std::make_unique<PieceCache>(text_size);
  return cache;
}

void IdlePieceCaches::give(std::unique_ptr<PieceCache> cache) {
  if (cache->full()) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(cache));
}

BpeCoder::BpeCoder(const TokenStore& tokens, const std::array<int32_t, 256>& byte_ids, std::span<const BpeMerge> merges,
                   bool whole_first)
    : byte_ids_(byte_ids),
      merges_(merges.begin(), merges.end()),
      pairs_(merges.size()),
      whole_(static_cast<size_t>(tokens.size())),
      length_(static_cast<size_t>(tokens.size())),
      whole_first_(whole_first) {
  BARY_CHECK(merges.size() < size_t{1} << 26, "tokenizer: {} merges are too many; at most {}", merges.size(), 1 << 26);
  for (int32_t id = 0; id < tokens.size(); ++id)
    length_[static_cast<size_t>(id)] = static_cast<int32_t>(tokens[id].size());
  std::vector<int32_t> made_by(length_.size(), -1);  // the last rank that makes a token
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right, result] = merges[i];
    bool added = false;
    pairs_.insert(left, right, {static_cast<int32_t>(i), result}, &added);
    if (added) made_by[static_cast<size_t>(result)] = static_cast<int32_t>(i);
  }
  byte_ranks_.resize(size_t{1} << 16);
  for (size_t i = 0; i < byte_ranks_.size(); ++i) byte_ranks_[i] = rank_of(byte_ids_[i >> 8], byte_ids_[i & 255]);
  for (size_t i = 0; i < merges.size(); ++i)
    in_order_ = in_order_ && std::max(made_by[static_cast<size_t>(merges[i].left)],
                                      made_by[static_cast<size_t>(merges[i].right)]) < static_cast<int32_t>(i);
  // Looking a piece up is only a short cut, so it may not find a token that the merges would not arrive at.
  std::vector<bool> entered(length_.size());
  const auto enter = [&](int32_t id) {
    if (entered[static_cast<size_t>(id)]) return;
    entered[static_cast<size_t>(id)] = true;
    IdSink sink(true);
    if (!whole_first) encode_piece(tokens, tokens[id], sink);
    if (whole_first || sink.take() == std::vector<int32_t>{id}) whole_.insert(tokens, id);
  };
  for (int32_t id : byte_ids_) enter(id);
  for (const BpeMerge& merge : merges) enter(merge.result);
  for (int32_t id = 0; whole_first && id < tokens.size(); ++id)
    if (!tokens[id].empty()) enter(id);
}

void BpeCoder::encode(const TokenStore& tokens, Pattern pattern, std::string_view text, IdSink& sink) const {
  if (merges_.empty() && !whole_first_) {
    for (char c : text) sink.put(byte_ids_[static_cast<uint8_t>(c)]);
    return;
  }
  std::unique_ptr<PieceCache> cache = caches_.take(text.size());
  if (cache == nullptr) {
    PieceScanner pieces(pattern, text);
    for (std::string_view piece; pieces.next(piece);) encode_piece(tokens, piece, sink);
  } else {
    encode_cached(tokens, pattern, text, *cache, sink);
    caches_.give(std::move(cache));
  }
}

void BpeCoder::encode_cached(const TokenStore& tokens, Pattern pattern, std::string_view text, PieceCache& cache,
                             IdSink& sink) const {
  struct Pending {
    std::string_view piece;
    PieceCache::Key key;
    PieceCache::Row* row;
  };
  std::array<Pending, 32> batch;
  std::array<int32_t, kShort> ids;
  PieceScanner pieces(pattern, text);
  const char* const end = text.data() + text.size();
  for (size_t size = batch.size(); size == batch.size();) {
    size = 0;
    for (Pending& pending : batch) {
      if (!pieces.next(pending.piece)) break;
      ++size;
      if (pending.piece.size() > PieceCache::kLongest) continue;
      pending.key = PieceCache::key_of(pending.piece, end);
      pending.row = cache.row(pending.key);
    }
    for (size_t i = 0; i < size; ++i) {
      const auto& [piece, key, row] = batch[i];
      if (piece.size() > PieceCache::kLongest) {
        encode_piece(tokens, piece, sink);
      } else if (!cache.find(*row, key, sink)) {
        const size_t n = code_short_or_whole(tokens, piece, ids.data());
        sink.put(ids.data(), n);
        cache.insert(*row, key, ids.data(), n);
      }
    }
  }
}

void BpeCoder::encode_piece(const TokenStore& tokens, std::string_view piece, IdSink& sink) const {
  if (piece.size() <= kShort) {
    std::array<int32_t, kShort> ids;
    sink.put(ids.data(), code_short_or_whole(tokens, piece, ids.data()));
    return;
  }
  const int32_t whole = whole_.find(tokens, piece);
  if (whole >= 0)
    sink.put(whole);
  else
    encode_long(piece, sink);
}

size_t BpeCoder::code_short_or_whole(const TokenStore& tokens, std::string_view piece, int32_t* ids) const {
  ids[0] = whole_.find(tokens, piece);
  return ids[0] >= 0 ? 1 : code_short(piece, ids);
}

// A bit per byte says where a token begins, so joining moves nothing; the lowest rank is found together with its place.
size_t BpeCoder::code_short(std::string_view piece, int32_t* ids) const {
  const size_t n = piece.size();
  std::array<uint32_t, kShort> keys;  // of the pair that begins here: rank * 64 + place
  const auto key_of = [&](size_t at, size_t next) {
    const Rank* rank = pairs_.find(ids[at], ids[next]);
    return rank != nullptr ? static_cast<uint32_t>(rank->rank) << 6 | static_cast<uint32_t>(at) : kNoKey;
  };
  for (size_t i = 0; i < n; ++i) ids[i] = byte_ids_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < n; ++i) {
    const int32_t rank = byte_ranks_[size_t{static_cast<uint8_t>(piece[i])} << 8 | static_cast<uint8_t>(piece[i + 1])];
    keys[i] = rank >= 0 ? static_cast<uint32_t>(rank) << 6 | static_cast<uint32_t>(i) : kNoKey;
  }
  keys[n - 1] = kNoKey;
  uint64_t begins = ~uint64_t{0} >> (64 - n);
  const auto after = [&](size_t at) { return begins >> at >> 1; };
  for (;;) {
    uint32_t best = kNoKey;
    for (size_t i = 0; i < n; ++i) best = std::min(best, keys[i]);
    if (best == kNoKey) break;
    const size_t at = best & 63, gone = at + 1 + static_cast<size_t>(std::countr_zero(after(at)));
    ids[at] = merges_[best >> 6].result;
    begins &= ~(uint64_t{1} << gone);
    keys[gone] = kNoKey;
    const uint64_t right = after(at), left = begins & ((uint64_t{1} << at) - 1);
    keys[at] = right != 0 ? key_of(at, at + 1 + static_cast<size_t>(std::countr_zero(right))) : kNoKey;
    if (left != 0) {
      const size_t before = 63 - static_cast<size_t>(std::countl_zero(left));
      keys[before] = key_of(before, at);
    }
  }
  size_t count = 0;
  for (; begins != 0; begins &= begins - 1) ids[count++] = ids[std::countr_zero(begins)];
  return count;
}

// Window by window, so that the work stays in the cache and needs little memory. Tokens are the code of their text if
// and only if each two neighbours are the code of theirs: the first merge across a seam depends on nothing else. So
// where two overlapping windows have one token in common, the first window up to it and the second from it on are the
// whole's code.
void BpeCoder::encode_long(std::string_view piece, IdSink& sink) const {
  std::vector<int32_t> done, now = encode_window(piece.substr(0, kWindow));
  size_t begin = 0;  // of `now`
  for (size_t end = kWindow; end < piece.size();) {
    size_t i = 0, at = begin;
    while (at + length(now[i]) <= end - kOverlap) at += length(now[i++]);
    const size_t next_end = std::min(at + kWindow, piece.size());
    if (next_end <= end) break;
    std::vector<int32_t> next = encode_window(piece.substr(at, next_end - at));
    size_t j = 0, next_at = at;
    while (i < now.size() && (at != next_at || now[i] != next[j])) {
      if (at <= next_at)
        at += length(now[i++]);
      else
        next_at += length(next[j++]);
    }
    if (i == now.size()) break;
    done.insert(done.end(), now.begin(), now.begin() + static_cast<std::ptrdiff_t>(i));
    next.erase(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(j));
    now = std::move(next);
    begin = at;
    end = next_end;
    if (end == piece.size()) break;
  }
  done.insert(done.end(), now.begin(), now.end());
  size_t covered = 0;
  for (const int32_t id : done) covered += length(id);
  // Tokens as long as a window have nothing in common: then all at once.
  if (covered < piece.size()) done = encode_window(piece);
  sink.put(done.data(), done.size());
}

std::vector<int32_t> BpeCoder::encode_window(std::string_view text) const {
  BARY_CHECK(text.size() < 0xFFFFFFF0, "encode: a piece of {} bytes is longer than 4 GiB; cut the text", text.size());
  TokenChain chain(length_);
  chain.reserve(text.size());
  for (char c : text) chain.append(byte_ids_[static_cast<uint8_t>(c)]);
  chain.append_edge();
  // The lists cost a pass over all ranks.
  if (in_order_ && text.size() >= kByRank && text.size() >= merges_.size() / 16)
    join_by_rank(chain);
  else
    join_by_heap(chain);
  std::vector<int32_t> ids;
  for (size_t at = 1; at + 1 < chain.size(); at += chain.length(chain.at(at))) ids.push_back(chain.at(at));
  return ids;
}

void BpeCoder::join_by_heap(TokenChain& chain) const {
  // The lowest rank first and, of one rank, the leftmost; what is out of date is dropped when it comes up.
  std::vector<uint64_t> heap;
  const auto entry = [&](size_t at, int32_t left, int32_t right) {
    const int32_t rank = left < 0 || right < 0 ? -1 : rank_of(left, right);
    if (rank >= 0) heap.push_back(static_cast<uint64_t>(rank) << 32 | at);
    return rank >= 0;
  };
  for (size_t at = 1; at + 2 < chain.size(); ++at) entry(at, chain.at(at), chain.at(at + 1));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const BpeMerge& merge = merges_[heap.back() >> 32];
    const size_t at = heap.back() & 0xFFFFFFFF;
    heap.pop_back();
    if (!chain.stands(at, merge.left, merge.right)) continue;
    chain.join(at, merge.left, merge.right, merge.result);
    const int32_t before = chain.before(at);
    if (before >= 0 && entry(at - chain.length(before), before, merge.result))
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (entry(at, merge.result, chain.after(at))) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

// Where every merge ranks after those that make its parts, ranks only rise while joining: a list of places per rank
// replaces the heap, and the time is linear.
void BpeCoder::join_by_rank(TokenChain& chain) const {
  struct Place {
    uint32_t at, next;  // next: 1 + index in the pool, 0 at the end
  };
  std::vector<Place> pool;
  uint32_t unused = 0;  // places to use again, chained the same way
  std::vector<uint32_t> head(merges_.size(), 0);
  const auto enter = [&](size_t at, int32_t left, int32_t right) {
    const int32_t rank = left < 0 || right < 0 ? -1 : rank_of(left, right);
    if (rank < 0) return;
    uint32_t place = unused;
    if (place == 0)
      pool.push_back({}), place = static_cast<uint32_t>(pool.size());
    else
      unused = pool[place - 1].next;
    pool[place - 1] = {static_cast<uint32_t>(at), std::exchange(head[static_cast<size_t>(rank)], place)};
  };
  for (size_t at = 1; at + 2 < chain.size(); ++at) enter(at, chain.at(at), chain.at(at + 1));
  std::vector<uint32_t> places;
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    places.clear();
    for (uint32_t place = head[rank]; place != 0;) {
      places.push_back(pool[place - 1].at);
      place = std::exchange(pool[place - 1].next, std::exchange(unused, place));
    }
    // Entered from left to right, and so listed from right to left, unless several merges make one token.
    std::reverse(places.begin(), places.end());
    if (!std::is_sorted(places.begin(), places.end())) std::sort(places.begin(), places.end());
    const auto& [left, right, result] = merges_[rank];
    for (const uint32_t at : places) {
      if (!chain.stands(at, left, right)) continue;
      chain.join(at, left, right, result);
      const int32_t before = chain.before(at);
      if (before >= 0) enter(at - chain.length(before), before, result);
      enter(at, result, chain.after(at));
    }
  }
}

std::vector<BpeMergeStep> BpeCoder::explain(std::string_view piece) const {
  std::vector<BpeMergeStep> steps;
  std::vector<int32_t> ids;
  for (char c : piece) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
  for (;;) {
    BpeMergeStep best;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int32_t rank = rank_of(ids[i], ids[i + 1]);
      if (rank >= 0 && (best.rank < 0 || rank < best.rank)) best = {rank, i, merges_[static_cast<size_t>(rank)]};
    }
    if (best.rank < 0) return steps;
    ids[best.at] = best.merge.result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best.at) + 1);
    steps.push_back(best);
  }
}

}  // namespace bary
