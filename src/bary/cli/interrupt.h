// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a wish to stop at the next good moment: while an InterruptGuard lives, the first SIGINT or SIGTERM only
// sets a flag that a loop reads between its steps; the second ends the process at once.
#pragma once
#include <csignal>

namespace bary {

bool interrupted();

class InterruptGuard {
 public:
  InterruptGuard();   // one at a time; forgets what came before
  ~InterruptGuard();  // the handlers as they were
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

}  // namespace bary
