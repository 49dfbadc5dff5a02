// SPDX-License-Identifier: Apache-2.0
// Damage, the same for the same stream: what a cut download, a bad disk and a hostile author do to a valid file.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bary/base/random.h"

namespace bary::fuzz {

class Mutator {
 public:
  explicit Mutator(RandomStream random) : random_(random) {}

  uint64_t below(uint64_t n) { return random_.below(n); }
  bool one_in(uint64_t n) { return below(n) == 0; }

  // One to four of: cut off, flip bits, write an interesting integer, remove, repeat or insert bytes, and splice with
  // the end of `other`.
  std::string bytes(std::string text, std::string_view other = {});
  // One to three edits of the values (remove, replace, another type, deep, long), a key given twice, and sometimes
  // bytes() on top. `text` must be JSON.
  std::string json(const std::string& text);
  // One number, wherever it stands, becomes one of those that sizes overflow at.
  std::string json_number(const std::string& text);
  // json() for the header of a safetensors file, with the length before it kept right.
  std::string safetensors(const std::string& file);
  // Lines of text (TOML, arguments): remove, repeat or swap lines, or the value behind an equals sign.
  std::string lines(const std::string& text);
  std::string random_bytes(size_t most);  // letters, blanks, characters of all lengths and broken UTF-8
  std::string odd_text();                 // what tends to break readers

 private:
  void edit_bytes(std::string& text, std::string_view other);
  void edit_json(nlohmann::json& root);
  nlohmann::json odd_value();
  uint64_t odd_integer();

  RandomStream random_;
};

}  // namespace bary::fuzz
