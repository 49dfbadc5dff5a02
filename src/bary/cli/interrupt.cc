// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/interrupt.h"

#include <unistd.h>

namespace bary {
namespace {

// A signal handler can reach nothing but a variable of the process.
volatile std::sig_atomic_t signal_seen = 0;

void on_signal(int signal_number) {
  if (signal_seen) ::_exit(128 + signal_number);
  signal_seen = 1;
}

}  // namespace

bool interrupted() { return signal_seen != 0; }

InterruptGuard::InterruptGuard() {
  signal_seen = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a write in progress is finished, not cut
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &old_interrupt_);
  ::sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &old_interrupt_, nullptr);
  ::sigaction(SIGTERM, &old_terminate_, nullptr);
}

}  // namespace bary
