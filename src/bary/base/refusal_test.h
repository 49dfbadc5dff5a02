// SPDX-License-Identifier: Apache-2.0
// What a test asks of an error: that it is thrown, of which kind, and what it says.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "bary/base/error.h"

namespace bary {

// The Error that body() throws; without one the test fails.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ErrorKind::numeric, "");
}

template <class Body>
std::string message_of(ErrorKind kind, Body body) {
  const Error error = error_of(body);
  EXPECT_EQ(error.kind(), kind) << error.what();
  return error.what();
}
template <class Body>
std::string message_of(Body body) {
  return message_of(ErrorKind::input, body);
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace bary
