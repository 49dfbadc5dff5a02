// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/io.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The first of the three that is set decides, as in setlocale(3).
bool locale_is_utf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = variable(name);
  }
  std::transform(locale.begin(), locale.end(), locale.begin(), [](unsigned char c) { return std::tolower(c); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

int terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::clamp<int>(size.ws_col, 20, 500);
  return 80;
}

}  // namespace

void Io::print(std::string_view text) {
  errno = 0;
  if (!out.write(text.data(), static_cast<std::streamsize>(text.size()))) throw OutputClosed{errno};
}

void Io::flush() {
  errno = 0;
  if (!out.flush()) throw OutputClosed{errno};
}

void Io::note(std::string_view line) {
  err << printable(line) << '\n' << std::flush;
  err.clear();
}

void Io::draw(std::string_view text) {
  err << text << std::flush;
  err.clear();
}

Io system_io() {
  std::ios::sync_with_stdio(false);
  Io io{std::cout, std::cerr, read_standard_input};
  io.out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  io.err_is_terminal = ::isatty(STDERR_FILENO) != 0;
  // no-color.org: set and not empty means no, whatever the value.
  io.color = io.err_is_terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  io.unicode = locale_is_utf8();
  io.columns = terminal_columns();
  return io;
}

std::string read_text(const std::string& file_or_dash, const Io& io) {
  return file_or_dash == "-" ? io.read_input() : read_file(file_or_dash);
}

std::vector<std::string> read_lines(const std::string& file_or_dash, const Io& io, BlankLines blank) {
  const std::string text = read_text(file_or_dash, io);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    BARY_CHECK(blank == BlankLines::allowed || !lines.back().empty(),
               "{}, line {}: it is blank, and a text needs a character; complete it or delete the line",
               file_or_dash == "-" ? "standard input" : file_or_dash, lines.size());
    at = end + 1;
  }
  return lines;
}

}  // namespace bary
