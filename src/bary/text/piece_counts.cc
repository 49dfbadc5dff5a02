// SPDX-License-Identifier: Apache-2.0
#include "bary/text/piece_counts.h"

#include "bary/text/bytes_hash.h"
#include "bary/text/special_tokens.h"

namespace bary {
namespace {

class Counter {
 public:
  Counter() : slots_(1024) {}

  void add(std::string_view piece) {
    const auto tag = static_cast<uint32_t>(hash_bytes(piece) >> 32);
    for (size_t i = tag & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.piece == kEmpty) {
        slot = {tag, static_cast<uint32_t>(pieces.size())};
        pieces.push_back({piece, 1});
        if (2 * pieces.size() > slots_.size()) grow();
        return;
      }
      if (slot.tag == tag && pieces[slot.piece].bytes == piece) {
        ++pieces[slot.piece].count;
        return;
      }
    }
  }

  std::vector<CountedPiece> pieces;

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  struct Slot {
    uint32_t tag = 0;
    uint32_t piece = kEmpty;
  };

  void grow() {
    BARY_CHECK(pieces.size() < kEmpty / 2, "train: more than {} distinct pieces; train on less text", kEmpty / 2);
    std::vector<Slot> bigger(slots_.size() * 2);
    for (const Slot& slot : slots_) {
      if (slot.piece == kEmpty) continue;
      size_t i = slot.tag & (bigger.size() - 1);
      while (bigger[i].piece != kEmpty) i = (i + 1) & (bigger.size() - 1);
      bigger[i] = slot;
    }
    slots_ = std::move(bigger);
  }

  std::vector<Slot> slots_;
};

}  // namespace

PieceCounts count_pieces(std::span<const std::string_view> documents, Pattern pattern,
                         std::span<const std::string> specials) {
  const SpecialMatcher matcher(specials);
  Counter counter;
  PieceCounts counts;
  const auto count_plain = [&](std::string_view text) {
    counts.bytes += static_cast<int64_t>(text.size());
    PieceScanner scanner(pattern, text);
    for (std::string_view piece; scanner.next(piece); ++counts.total) counter.add(piece);
  };
  for (std::string_view document : documents) {
    size_t at = 0;
    while (const auto match = matcher.find(document, at)) {
      count_plain(document.substr(at, match->begin - at));
      at = match->end;
    }
    count_plain(document.substr(at));
  }
  counts.pieces = std::move(counter.pieces);
  return counts;
}

}  // namespace bary
