// SPDX-License-Identifier: Apache-2.0
// Tokens with a meaning of their own, such as <|endoftext|>: never learned, matched as whole strings, and dangerous
// where text from strangers may contain them. So every encoding says what it does about them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/base/error.h"

namespace bary {

constexpr const char* kMaskToken = "[MASK]";  // stands where a masked language model is asked for a token

struct SpecialToken {
  std::string text;
  int32_t id = 0;
  bool control = true;  // false: an added token that is ordinary text (Hugging Face's "special": false), always matched
};

// What encode() does with the text of control tokens.
struct SpecialPolicy {
  enum class Others : uint8_t { error, text };  // what is not allowed: refuse, or encode like any other text
  bool all = false;                             // every control token is allowed
  std::vector<std::string> allowed;             // or these
  Others others = Others::error;

  static SpecialPolicy refuse() { return {}; }
  static SpecialPolicy as_text() { return {false, {}, Others::text}; }
  static SpecialPolicy match_all() { return {true, {}, Others::error}; }
};

// Control text met where it was not allowed: which token, and where it begins.
class SpecialTextError : public Error {
 public:
  SpecialTextError(std::string token, size_t offset);
  const std::string& token() const { return token_; }
  size_t offset() const { return offset_; }  // bytes

 private:
  std::string token_;
  size_t offset_;
};

// Finds tokens leftmost first and, at one place, the longest; one pass over the text.
class SpecialMatcher {
 public:
  struct Match {
    size_t begin, end;  // bytes
    size_t index;       // in the list of tokens
  };

  SpecialMatcher() = default;
  // Refused: an empty text, a text given twice.
  explicit SpecialMatcher(std::span<const SpecialToken> tokens);
  explicit SpecialMatcher(std::span<const std::string> texts);

  // The first match at or after `from` among the tokens with enabled[index] (all, where enabled is empty).
  std::optional<Match> find(std::string_view text, size_t from, const std::vector<bool>& enabled = {}) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string text;
    size_t index;
  };
  void add(std::string_view text, size_t index);
  void finish();
  size_t next_candidate(std::string_view text, size_t from) const;
  std::optional<Match> longest_at(std::string_view text, size_t at, const std::vector<bool>& enabled) const;

  std::vector<Entry> entries_;  // sorted by text
  std::array<bool, 256> begins_{};
  int only_first_ = -1;  // the first byte, where all tokens share it
};

}  // namespace bary
