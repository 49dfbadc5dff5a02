// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "bary/cli/run.h"

int main(int argc, char** argv) {
  // A reader that goes away (`| head`) becomes a failed write, so that a run in a pipe can still save before it ends.
  std::signal(SIGPIPE, SIG_IGN);
  return bary::run(argc, argv, bary::system_io());
}
