// SPDX-License-Identifier: Apache-2.0
// What is said if the process dies before the end of the scope: a crash takes the test's own message with it.
#pragma once
#include <string>

namespace bary::fuzz {

class LastWords {
 public:
  explicit LastWords(const std::string& text);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

}  // namespace bary::fuzz
