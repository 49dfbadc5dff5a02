// SPDX-License-Identifier: Apache-2.0
// Where pairs of texts come from, a source and the target to make of it, for models that read one and write the other.
//   copy reverse sort   random letters; the target is the same letters copied, reversed or sorted
//   numbers-words       0 to 999,999: "342" -> "three hundred forty-two"; words-numbers the other way
//   roman-arabic        1 to 3999: "MCMXCIV" -> "1994"; arabic-roman the other way
//   restoration         the lines of a text in lower case without punctuation -> the lines as they were
//   pairs               a file of the user's, SOURCE, a tab and TARGET a line; or two files, line for line
// Two splits that never share a source where pairs are made up (the contents decide, whatever is drawn), and never a
// line where they come from a text (its end is held out; a line that stands twice may be on both sides).
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bary {

struct TextPair {
  std::string source, target;  // UTF-8; a target may be empty, a source never is
  bool operator==(const TextPair&) const = default;
};

enum class PairSplit : uint8_t { training, held_out };

struct PairOptions {
  uint64_t seed = 0;                       // letters, numbers: which part is held out
  double held_out = 0.1;                   // its share: at least 0 (everything is for training) and below 1
  int symbols = 8;                         // letters: a, b, ... ; 2 to 26
  int min_length = 3, max_length = 20;     // letters: of a source, uniformly; 1 to 100,000
  std::string text = {};                   // restoration
  std::filesystem::path file = {};         // pairs
  std::filesystem::path target_file = {};  // pairs: `file` then has the sources only, this one their targets
};

// What a model and a run have to know about a source of pairs before the first one is drawn.
struct PairFacts {
  std::string name;
  double held_out = 0;                             // share
  std::string alphabet;                            // every character of any pair once, by code point
  int64_t longest_source = 0, longest_target = 0;  // characters
  std::string sha256;                              // of all that decides about the pairs: a resumed run compares it
};

class PairTask {
 public:
  virtual ~PairTask() = default;

  const PairFacts& facts() const { return facts_; }
  const std::string& name() const { return facts_.name; }
  const std::string& alphabet() const { return facts_.alphabet; }

  // The index-th draw of the stream `seed`, from any thread, the same each time. Draws repeat where there are few
  // pairs. Throws for held_out where nothing is.
  virtual TextPair draw(uint64_t seed, PairSplit split, uint64_t index) const = 0;

  // Every pair of a split, once, in order: numbers by value, lines by place. Letters can't be listed: count is 0.
  virtual bool is_list() const { return false; }
  virtual int64_t count(PairSplit split) const;
  virtual TextPair listed(PairSplit split, int64_t index) const;

 protected:
  explicit PairTask(PairFacts facts) : facts_(std::move(facts)) {}

 private:
  PairFacts facts_;
};

const std::vector<std::string>& pair_task_names();  // as above
bool is_pair_task(std::string_view name);
// Throws on an unknown name (with the nearest), on options the task can't have, and on files that are not what they
// should be, with the number of the line: no tab or a second one, a blank line, an empty source, bytes that are not
// UTF-8, files of unequal length. CRLF and a byte order mark are taken off.
std::unique_ptr<PairTask> make_pair_task(std::string_view name, const PairOptions& options = {});

std::vector<TextPair> listed_pairs(const PairTask& task, PairSplit split);
std::vector<TextPair> drawn_pairs(const PairTask& task, uint64_t seed, PairSplit split, int64_t count);  // 0 to count-1

// What restoration makes of a line: A-Z in lower case, ASCII punctuation gone, words parted by one space; all other
// bytes as they are. Empty where nothing is left.
std::string without_case_and_punctuation(std::string_view line);

}  // namespace bary
