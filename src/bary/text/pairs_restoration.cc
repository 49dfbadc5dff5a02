// SPDX-License-Identifier: Apache-2.0
// Restoring what speech leaves out: source "we are accounted poor citizens the patricians good", target the line as it
// was written. The split is by place: the last lines are held out.
#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/sha256.h"
#include "bary/text/batch.h"
#include "bary/text/pair_tasks.h"

namespace bary {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

struct Line {
  size_t begin, size;
};

class RestorationPairs : public ListedPairs {
 public:
  RestorationPairs(PairFacts facts, std::string text, std::vector<Line> lines, int64_t training)
      : ListedPairs(std::move(facts), training, std::ssize(lines) - training),
        text_(std::move(text)),
        lines_(std::move(lines)) {}

 protected:
  TextPair pair_at(PairSplit split, int64_t index) const override {
    const int64_t i = index + (split == PairSplit::training ? 0 : count(PairSplit::training));
    const Line& line = lines_[static_cast<size_t>(i)];
    std::string target = text_.substr(line.begin, line.size);
    return {without_case_and_punctuation(target), std::move(target)};
  }

 private:
  std::string text_;
  std::vector<Line> lines_;
};

}  // namespace

std::string without_case_and_punctuation(std::string_view line) {
  std::string left;
  bool parted = false;
  for (const char c : line) {
    if (is_space(c)) {
      parted = true;
    } else if (!is_punctuation(c)) {
      if (parted && !left.empty()) left += ' ';
      parted = false;
      left += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return left;
}

std::unique_ptr<PairTask> make_restoration_pairs(const PairOptions& options) {
  const std::string what = "restoration: the text";
  BARY_CHECK(!options.text.empty(), "{} is empty, at least one line with a letter or digit is needed; give a text",
             what);
  check_size_of_text(what, options.text);
  PairCensus census;
  std::vector<Line> lines;
  for_each_line(options.text, [&](int64_t number, size_t begin, size_t size) {
    const std::string_view line = std::string_view(options.text).substr(begin, size);
    check_line(what, number, line);
    const std::string source = without_case_and_punctuation(line);
    if (source.empty()) return;
    census.add(source, line);
    lines.push_back({begin, size});
  });
  BARY_CHECK(!lines.empty(), "{} has {} bytes but no line with a letter or digit; give another text", what,
             options.text.size());
  const std::string identity = fmt::format("restoration {} ", options.held_out);
  PairFacts facts = census.facts("restoration", options.held_out, Sha256().update(identity).update(options.text).hex());
  const int64_t training = count_to_learn_from(std::ssize(lines), options.held_out);
  return std::make_unique<RestorationPairs>(std::move(facts), options.text, std::move(lines), training);
}

}  // namespace bary
