// SPDX-License-Identifier: Apache-2.0
// The line that tells how far a run is. Everything here makes text from numbers; whoever owns the terminal prints it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace bary {

struct Progress {
  int64_t step = 0;        // updates done, those before a resume included
  int64_t steps = 0;       // at the end
  int64_t first_step = 0;  // where this process began: a resumed run counts only its own work
  int64_t tokens = 0;      // seen by this process
  double seconds = 0;      // since this process began
  std::optional<double> loss{};
  std::optional<double> peak_share{};  // of this machine's measured FMA peak, 0 .. 1
};

// 0 where no time has passed.
double tokens_per_second(int64_t tokens, double seconds);
// At the speed of this process so far; nothing before its first step is done.
std::optional<double> seconds_left(const Progress& progress);

// " 42%  step 1,260/3,000  loss 2.3456  20.7k tok/s  61.0% of peak  1m 05s left", without what is not known.
std::string progress_text(const Progress& progress);
// The same behind a bar, in at most `columns`: the bar shrinks first, then fields go from the right.
std::string progress_line(const Progress& progress, int columns, bool unicode = true);

// When to print what: on a terminal one line that is redrawn at most ten times a second, else a plain line for every
// `every` steps. Both show the last step.
class ProgressView {
 public:
  ProgressView(bool terminal, int columns, bool unicode, int64_t every)
      : terminal_(terminal), columns_(columns), unicode_(unicode), every_(every) {}

  std::string update(const Progress& progress);  // what to print now; often nothing
  std::string clear();                           // before other lines are printed: removes the line drawn last

 private:
  bool terminal_;
  int columns_;
  bool unicode_;
  int64_t every_;
  double drawn_at_ = -1;  // seconds
  bool line_shown_ = false;
};

}  // namespace bary
