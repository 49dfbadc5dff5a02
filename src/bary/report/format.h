// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Pure text, the same under every locale.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace bary {

std::string grouped(int64_t value);                     // 1,234,567
std::string short_count(double value);                  // 950, 20.7k, 1.24M, 3.10G: three digits
std::string bytes_text(int64_t bytes);                  // 12.3 MB, in powers of 1000
std::string duration_text(double seconds);              // 0.42s, 7.30s, 42.0s, 1m 05s, 2h 03m, 3d 04h
std::string percent_text(double share);                 // 0.423 -> 42.3%
std::string number_text(double value, int digits = 4);  // digits that count, no needless zeros; "nan", "inf", "-inf"

// Columns a terminal uses for UTF-8 text: 0 for combining marks, 2 for East Asian wide characters and emoji. An invalid
// byte counts as 1.
int display_width(std::string_view text);
// The longest prefix of whole characters that fits, closed with "…" (or "..." where `unicode` is false) when cut.
std::string fitted(std::string_view text, int columns, bool unicode = true);

}  // namespace bary
