// SPDX-License-Identifier: Apache-2.0
// Where a command reads and writes. Results go to standard output, progress and notes to standard error, so that
// `bary ... > file` and `bary ... | program` hold results only.
#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace bary {

// Standard output cannot be written any more. Not an Error: when its reader has gone (`| head`), nobody is to be told.
struct OutputClosed {
  int error_number = 0;
};

struct Io {
  std::ostream& out;
  std::ostream& err;
  std::function<std::string()> read_input;  // standard input to its end
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color = false;    // a terminal, and neither NO_COLOR nor TERM=dumb
  bool unicode = false;  // the locale is UTF-8
  int columns = 80;      // of the terminal

  void print(std::string_view text);  // a result, as it is; throws OutputClosed
  void flush();                       // throws OutputClosed
  // Lines for people, printable (base/quote.h); a closed standard error is no reason to stop.
  void note(std::string_view line);
  void draw(std::string_view text);  // raw, for progress lines
};

Io system_io();  // the process' own streams

// The bytes of a file, or of standard input for "-".
std::string read_text(const std::string& file_or_dash, const Io& io);

// The same as one text a line, without LF or CRLF. A blank line where a text needs a character is an Error that names
// file and line.
enum class BlankLines { allowed, refused };
std::vector<std::string> read_lines(const std::string& file_or_dash, const Io& io, BlankLines blank);

}  // namespace bary
