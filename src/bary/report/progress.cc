// SPDX-License-Identifier: Apache-2.0
#include "bary/report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bary/report/format.h"

namespace bary {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kWidestBar = 24;
constexpr int kNarrowestBar = 6;

double share_done(const Progress& p) {
  if (p.steps <= 0) return 1;
  return std::clamp(static_cast<double>(p.step) / static_cast<double>(p.steps), 0.0, 1.0);
}

std::vector<std::string> fields(const Progress& p) {
  // Rounded down: 100% means done.
  std::vector<std::string> out = {fmt::format("{:3}%", static_cast<int>(100 * share_done(p)))};
  out.push_back(fmt::format("step {}/{}", grouped(p.step), grouped(p.steps)));
  if (p.loss)
    out.push_back(std::isfinite(*p.loss) ? fmt::format("loss {:.4f}", *p.loss) : "loss " + number_text(*p.loss));
  if (p.tokens > 0 && p.seconds > 0) out.push_back(short_count(tokens_per_second(p.tokens, p.seconds)) + " tok/s");
  if (p.peak_share) out.push_back(percent_text(*p.peak_share) + " of peak");
  if (p.step >= p.steps)
    out.push_back("in " + duration_text(p.seconds));
  else if (auto left = seconds_left(p))
    out.push_back(duration_text(*left) + " left");
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : "  ") + part;
  return out;
}

std::string bar(double share, int columns, bool unicode) {
  if (!unicode) {
    int done = static_cast<int>(share * (columns - 2));
    return "[" + std::string(static_cast<size_t>(done), '=') +
           std::string(static_cast<size_t>(columns - 2 - done), ' ') + "]";
  }
  static constexpr const char* kEighths[] = {"\u258f", "\u258e", "\u258d", "\u258c",
                                             "\u258b", "\u258a", "\u2589", "\u2588"};
  int eighths = static_cast<int>(share * columns * 8);
  std::string out;
  for (int i = 0; i < columns; ++i) {
    int here = std::clamp(eighths - 8 * i, 0, 8);
    out += here ? kEighths[here - 1] : "\u2591";
  }
  return out;
}

}  // namespace

double tokens_per_second(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

std::optional<double> seconds_left(const Progress& p) {
  int64_t done = p.step - p.first_step;
  if (done <= 0 || p.seconds <= 0) return std::nullopt;
  return p.seconds / static_cast<double>(done) * static_cast<double>(std::max<int64_t>(p.steps - p.step, 0));
}

std::string progress_text(const Progress& progress) { return joined(fields(progress)); }

std::string progress_line(const Progress& progress, int columns, bool unicode) {
  auto parts = fields(progress);
  std::string text = joined(parts);
  while (display_width(text) > columns && parts.size() > 1) {
    parts.pop_back();
    text = joined(parts);
  }
  int room = std::min(columns - display_width(text) - 1, kWidestBar);
  return room < kNarrowestBar ? fitted(text, columns, unicode) : bar(share_done(progress), room, unicode) + " " + text;
}

std::string ProgressView::update(const Progress& progress) {
  bool last = progress.step >= progress.steps;
  if (!terminal_) {
    bool due = every_ > 0 && progress.step % every_ == 0;
    return due || last ? progress_text(progress) + "\n" : "";
  }
  bool soon = drawn_at_ >= 0 && progress.seconds - drawn_at_ < kRedrawSeconds;
  if (soon && !last) return "";
  drawn_at_ = progress.seconds;
  line_shown_ = !last;
  // One column stays free: a full line would wrap in some terminals.
  return "\r" + progress_line(progress, columns_ - 1, unicode_) + "\x1b[K" + (last ? "\n" : "");
}

std::string ProgressView::clear() {
  if (!line_shown_) return "";
  line_shown_ = false;
  drawn_at_ = -1;
  return "\r\x1b[K";
}

}  // namespace bary
