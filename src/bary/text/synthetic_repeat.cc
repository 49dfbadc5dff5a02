// SPDX-License-Identifier: Apache-2.0
// [r][r]: L distinct random tokens, then the same L again. Distinct, so that each token has one earlier occurrence and
// the rule [A][B] ... [A] -> [B] is right every time. The first token of the second copy can't be known; the other L-1
// can (Olsson et al. 2022, "In-context learning and induction heads", measure induction on such text).
#include <numeric>

#include "bary/base/error.h"
#include "bary/text/synthetic_languages.h"

namespace bary {
namespace {

std::vector<std::string> token_names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("t{}", i));
  return names;
}

class Repeat : public SyntheticLanguage {
 public:
  Repeat(int symbols, int length, const SyntheticOptions& options)
      : SyntheticLanguage("repeat", token_names(symbols), 2 * int64_t{length}), length_(length), options_(options) {}

  SyntheticSequence sequence(uint64_t seed, SyntheticSplit split, uint64_t index) const override {
    SyntheticSequence made;
    made.tokens = draw_on_side(options_, split, draw_stream(seed, split, index), [this](RandomStream& stream) {
      std::vector<int32_t> ids(static_cast<size_t>(vocab_size()));
      std::iota(ids.begin(), ids.end(), 0);
      const auto length = static_cast<size_t>(length_);
      for (size_t i = 0; i < length; ++i) std::swap(ids[i], ids[i + stream.below(ids.size() - i)]);
      ids.resize(length);
      return ids;
    });
    for (int i = 0; i < length_; ++i) made.tokens.push_back(made.tokens[static_cast<size_t>(i)]);
    made.scored.assign(made.tokens.size(), 0);
    for (size_t i = static_cast<size_t>(length_) + 1; i < made.tokens.size(); ++i) made.scored[i] = 1;
    return made;
  }

 private:
  int length_;
  SyntheticOptions options_;
};

}  // namespace

std::unique_ptr<SyntheticLanguage> make_repeat(const SyntheticOptions& options) {
  const int symbols = or_default(options.symbols, 64);
  const int length = or_default(options.length, 32);
  check_held_out("repeat", options.held_out);
  check_range("repeat", "the number of tokens (symbols)", symbols, 3, 50'000);
  check_range("repeat", "length, whose tokens are distinct,", length, 2, symbols);
  return std::make_unique<Repeat>(symbols, length, options);
}

}  // namespace bary
