// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "bary/base/json.h"
#include "bary/text/utf8.h"

namespace bary::fuzz {
namespace {

// Stand in the place of a value until it is text: too deep, too long or too odd to be held as a value.
constexpr const char* kDeep = "@deep@";
constexpr const char* kLong = "@long@";
constexpr const char* kRaw = "@raw@";

constexpr std::array<const char*, 14> kRawValues = {"1e999",
                                                    "-1e999",
                                                    "-0",
                                                    "18446744073709551616",
                                                    "99999999999999999999999999999999",
                                                    "1e-999",
                                                    "NaN",
                                                    "01",
                                                    "+1",
                                                    ".5",
                                                    "truee",
                                                    "\"\\ud800\"",
                                                    "'x'",
                                                    "\"a"};

std::string repeated(std::string_view part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

uint64_t Mutator::odd_integer() {
  constexpr std::array<uint64_t, 22> kOdd = {
      0,          1,          2,          127,         255,        256,        0x7FFF,     0xFFFF,
      0x10000,    0x3FFFFF,   0xFFFFFF,   100'000'000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, uint64_t{1} << 32,
      1ull << 53, 1ull << 61, 1ull << 62, INT64_MAX,   1ull << 63, UINT64_MAX};
  const uint64_t value = kOdd[below(kOdd.size())];
  return one_in(4) ? value + below(17) - 8 : value;
}

std::string Mutator::odd_text() {
  static const std::vector<std::string> kOdd = {"",
                                                std::string(1, '\0'),
                                                "\xEF\xBB\xBF",
                                                "[[[[[[[[",
                                                "{{{{",
                                                "\"",
                                                "\\",
                                                "\\u0000",
                                                "\x1b[31m",
                                                "\xFF",
                                                "\xC0\x80",
                                                "\xED\xA0\x80",
                                                "\r\n",
                                                "<|endoftext|>",
                                                "nan",
                                                "-inf",
                                                "1e400",
                                                "-1",
                                                "=",
                                                "--",
                                                "[a.b]",
                                                "'''",
                                                "\"\"\"",
                                                "../x",
                                                "__metadata__",
                                                "F32",
                                                "e\xCC\x81",
                                                "\xF4\x90\x80\x80",
                                                "\xC2\x9B"
                                                "31m",
                                                "9223372036854775808",
                                                "true",
                                                "# x",
                                                "\xE2\x80\xA8"};
  const std::string& text = kOdd[below(kOdd.size())];
  return one_in(16) ? repeated(text, 1 + below(3000)) : text;
}

std::string Mutator::random_bytes(size_t most) {
  std::string out;
  const size_t size = below(most + 1);
  while (out.size() < size) {
    switch (below(8)) {
      case 0:
        out += static_cast<char>(below(256));
        break;
      case 1:
        append_utf8(out, static_cast<uint32_t>(below(0xD800)));
        break;
      case 2:
        append_utf8(out, static_cast<uint32_t>(0xE000 + below(0x110000 - 0xE000)));
        break;
      case 3:
        out += odd_text();
        break;
      case 4:
        out += repeated(std::string(1, " \n\t'a1"[below(6)]), 1 + below(one_in(40) ? 20000 : 40));
        break;
      default:
        out += " the and 's 'll I've 1984, x\n"[below(29)];
    }
  }
  out.resize(size);
  return out;
}

void Mutator::edit_bytes(std::string& text, std::string_view other) {
  const size_t at = below(text.size() + 1), rest = text.size() - at;
  const size_t some = std::min<size_t>(rest, one_in(3) ? below(rest + 1) : below(16));
  switch (below(8)) {
    case 0:
      text.resize(at);
      break;
    case 1:
      for (uint64_t flips = 1 + below(4); flips > 0 && !text.empty(); --flips)
        text[below(text.size())] ^= static_cast<char>(1 << below(8));
      break;
    case 2: {
      const uint64_t value = odd_integer();
      const size_t width = size_t{1} << below(4);
      // At the front more often: lengths and magic numbers stand there.
      const size_t place = one_in(3) ? 0 : at;
      if (text.size() >= place + width) std::memcpy(text.data() + place, &value, width);
      break;
    }
    case 3:
      text.erase(at, some);
      break;
    case 4:
      text.insert(at, text.substr(at, some));
      break;
    case 5:
      text.insert(at, random_bytes(24));
      break;
    case 6:
      text.insert(at, odd_text());
      break;
    default:
      text.resize(at);
      if (!other.empty()) text += other.substr(below(other.size()));
  }
}

std::string Mutator::bytes(std::string text, std::string_view other) {
  for (uint64_t edits = 1 + below(4); edits > 0; --edits) edit_bytes(text, other);
  return text;
}

Json Mutator::odd_value() {
  switch (below(13)) {
    case 0:
      return nullptr;
    case 1:
      return one_in(2);
    case 2:
    case 3:
      return odd_integer();
    case 4:
    case 5:
      return static_cast<int64_t>(odd_integer());
    case 6:
      return std::array<double, 6>{0.5, -0.0, 1e308, -1e308, 5e-324, 1e18}[below(6)];
    case 7:
      return odd_text();
    case 8:
      return Json::array();
    case 9:
      return Json::object();
    case 10:
      return kDeep;
    case 11:
      return kLong;
    default:
      return kRaw;
  }
}

// Walks down from the root and changes something where it stops; the few members at the top come as often as the many
// at the bottom.
void Mutator::edit_json(Json& root) {
  Json* at = &root;
  while (at->is_structured() && !at->empty()) {
    auto child = at->begin();
    std::advance(child, static_cast<std::ptrdiff_t>(below(at->size())));
    const bool deeper = child->is_structured() && !child->empty() && !one_in(4);
    if (deeper) {
      at = &*child;
      continue;
    }
    switch (below(6)) {
      case 0:
        at->erase(child);
        break;
      case 1:
        if (at->is_array())
          at->push_back(*child);
        else
          (*at)[odd_text()] = *child;
        break;
      case 2: {
        auto twin = at->begin();
        std::advance(twin, static_cast<std::ptrdiff_t>(below(at->size())));
        std::swap(*twin, *child);
        break;
      }
      case 3:
        *child = Json::array({*child});
        break;
      default:
        *child = odd_value();
    }
    return;
  }
  *at = odd_value();
}

std::string Mutator::json(const std::string& text) {
  Json value = Json::parse(text);
  for (uint64_t edits = 1 + below(3); edits > 0; --edits) edit_json(value);
  std::string out = value.dump(one_in(4) ? 2 : -1, ' ', false, Json::error_handler_t::replace);
  const size_t depth = std::array<size_t, 4>{3, 63, 66, 20000}[below(4)];
  const char* open = one_in(2) ? "[" : "{\"a\":";
  replace_all(out, std::string("\"") + kDeep + '"',
              repeated(open, depth) + "0" + repeated(open[0] == '[' ? "]" : "}", depth));
  const char* item = std::array<const char*, 4>{"0,", "[],", "{},", "\"a b\","}[below(4)];
  replace_all(out, std::string("\"") + kLong + '"',
              "[" + repeated(item, std::array<size_t, 3>{2, 256, 8000}[below(3)]) + "0]");
  replace_all(out, std::string("\"") + kRaw + '"', kRawValues[below(kRawValues.size())]);
  if (one_in(8)) {
    const size_t colon = out.find("\":", below(out.size() + 1));
    const size_t quote = colon == std::string::npos || colon == 0 ? colon : out.rfind('"', colon - 1);
    if (quote != std::string::npos) out.insert(quote, out.substr(quote, colon - quote) + "\":0,");
  }
  return one_in(8) ? bytes(std::move(out)) : out;
}

std::string Mutator::json_number(const std::string& text) {
  Json value = Json::parse(text);
  std::vector<Json*> numbers, open = {&value};
  while (!open.empty()) {
    Json* const at = open.back();
    open.pop_back();
    if (at->is_number()) numbers.push_back(at);
    if (!at->is_structured()) continue;
    for (Json& child : *at) open.push_back(&child);
  }
  if (!numbers.empty()) *numbers[below(numbers.size())] = odd_integer();
  return value.dump();
}

std::string Mutator::safetensors(const std::string& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const std::string header = json(file.substr(8, length)), data = file.substr(8 + length);
  length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

std::string Mutator::lines(const std::string& text) {
  std::vector<std::string> all;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (uint64_t edits = 1 + below(3); edits > 0 && !all.empty(); --edits) {
    std::string& line = all[below(all.size())];
    const size_t equals = line.find('=');
    switch (below(7)) {
      case 0:
        line.clear();
        break;
      case 1:
        std::swap(line, all[below(all.size())]);
        break;
      case 2:
        all.push_back(std::string(line));
        break;
      case 3:
        line = odd_text();
        break;
      case 4:
        line = bytes(line);
        break;
      default:
        if (equals != std::string::npos) line.resize(equals + 1);
        line += one_in(2) ? std::to_string(odd_integer()) : one_in(3) ? random_bytes(20) : odd_text();
    }
  }
  std::string out;
  for (const std::string& line : all) out += line + "\n";
  return out;
}

}  // namespace bary::fuzz
