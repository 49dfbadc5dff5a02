// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <csignal>

#include "bary/cli/run.h"
#include "bary/program/commands.h"

namespace {

// A standard stream that the caller closed would be the number of the next file opened, and messages would be written
// into a checkpoint. It is held open in the wrong direction, so that its use still fails.
void hold_standard_streams() {
  for (int descriptor : {0, 1, 2}) {
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  // A reader that goes away (`| head`) becomes a failed write, so that a run in a pipe can still save before it ends.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // likewise a limit on file sizes: an error that is told, not a death
  return bary::run(bary::all_commands(), argc, argv, bary::system_io());
}
