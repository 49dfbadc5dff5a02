// SPDX-License-Identifier: Apache-2.0
#include "last_words.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>

// Sanitizers end the process their own way; they have this where they are linked in. GCC's checks of undefined
// behaviour have it not, so they are told to end with SIGABRT.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace bary::fuzz {
namespace {

// Written by the handler of a signal: nothing may be allocated or locked there.
std::array<char, 256> g_words;
size_t g_size = 0;

void say() {
  if (g_size == 0) return;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, g_words.data(), g_size);
  g_size = 0;
}

void on_signal(int) { say(); }  // SA_RESETHAND: the fault then happens once more, and ends the process

bool install() {
  const bool sanitized = __sanitizer_set_death_callback != nullptr;
  if (sanitized) __sanitizer_set_death_callback(say);
  // A stack of its own, as the other one may be what has run out.
  static std::array<char, 1 << 16> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_ONSTACK);
  bool good = ::sigaltstack(&stack, nullptr) == 0 && ::sigaction(SIGABRT, &action, nullptr) == 0;
  // A sanitizer's own report of these says more.
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) good &= sanitized || ::sigaction(signal, &action, nullptr) == 0;
  return good;
}

}  // namespace

LastWords::LastWords(const std::string& text) {
  [[maybe_unused]] static const bool installed = install();
  g_size = std::min(text.size(), g_words.size());
  std::copy_n(text.begin(), g_size, g_words.begin());
}

LastWords::~LastWords() { g_size = 0; }

}  // namespace bary::fuzz
