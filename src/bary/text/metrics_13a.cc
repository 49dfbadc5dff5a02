// SPDX-License-Identifier: Apache-2.0
// The tokenisation of mteval-v13a as sacrebleu applies it: four rewritings, one after the other, then a split at white
// space. All its classes are ASCII or "anything but a digit", so it works byte by byte: the one byte that a rule looks
// at beside "." or "," is never part of another match, whichever byte of a longer character it is.
#include <cstdint>

#include "bary/text/metrics.h"
#include "bary/text/utf8.h"

namespace bary {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
// ASCII punctuation and the blank, without ' , - .
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string made;
  size_t begin = 0;
  for (size_t found; (found = text.find(from, begin)) != std::string::npos; begin = found + from.size()) {
    made.append(text, begin, found - begin).append(to);
  }
  if (begin > 0) text = made.append(text, begin);
}

std::string part_punctuation(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (stands_alone(c)) {
      (((made += ' ') += c) += ' ');
    } else {
      made += c;
    }
  }
  return made;
}

enum class Mark : uint8_t { first, second };

// Where two neighbours fit, the one that is the mark gets a blank on either side, and both are done with.
template <class First, class Second>
std::string part_mark(const std::string& text, First first, Second second, Mark mark) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      made += text[i];
      continue;
    }
    if (mark == Mark::first) made += ' ';
    ((made += text[i]) += ' ') += text[i + 1];
    if (mark == Mark::second) made += ' ';
    ++i;
  }
  return made;
}

// Without trailing white space: it would turn a final "-" before a line end into part of a hyphenated word.
std::string_view trimmed_right(std::string_view line) {
  const auto words = split_words(line);
  if (words.empty()) return {};
  return line.substr(0, static_cast<size_t>(words.back().data() + words.back().size() - line.data()));
}

}  // namespace

std::vector<std::string> tokens_13a(std::string_view line) {
  const std::string valid = replace_invalid_utf8(line);
  std::string text(trimmed_right(valid));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  text = part_punctuation(" " + text + " ");
  const auto not_digit = [](char c) { return !is_digit(c); };
  const auto dash = [](char c) { return c == '-'; };
  text = part_mark(text, not_digit, is_stop, Mark::second);
  text = part_mark(text, is_stop, not_digit, Mark::first);
  text = part_mark(text, is_digit, dash, Mark::second);
  std::vector<std::string> tokens;
  for (const std::string_view word : split_words(text)) tokens.emplace_back(word);
  return tokens;
}

}  // namespace bary
