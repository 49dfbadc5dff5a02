// SPDX-License-Identifier: Apache-2.0
// bary tokenizer decode: ids to the exact bytes.
#include <charconv>

#include "bary/base/error.h"
#include "bary/base/options.h"
#include "bary/base/quote.h"
#include "bary/cli/tokenizer_commands.h"
#include "bary/cli/tokenizer_source.h"

namespace bary {
namespace {

struct DecodeRequest {
  std::string tokenizer = "tokenizer.json";
  bool replace = false;
};

Options describe(DecodeRequest& r) {
  Options o("tokenizer decode");
  o.add("tokenizer", &r.tokenizer, kTokenizerHelp, {.value_name = "FILE"});
  o.add("replace", &r.replace, "print valid UTF-8 with U+FFFD for broken bytes, instead of the exact bytes");
  return o;
}

// Numbers apart by blanks or commas, in brackets or not: what encode prints, with --json too.
void append_ids(std::string_view text, std::vector<int32_t>& ids) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (size_t from = 0; (from = text.find_first_not_of(kBetween, from)) != std::string_view::npos;) {
    size_t to = std::min(text.find_first_of(kBetween, from), text.size());
    std::string_view word = text.substr(from, to - from);
    int32_t id = 0;
    auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), id);
    BARY_CHECK(code == std::errc() && end == word.data() + word.size() && id >= 0,
               "tokenizer decode: {} is no token id; give whole numbers from 0", quote(word));
    ids.push_back(id);
    from = to;
  }
}

int run_decode(std::span<const std::string> args, Io& io) {
  DecodeRequest r;
  auto words = describe(r).parse_args(args);
  BARY_CHECK(!words.empty(), "tokenizer decode: no ids came; give them, or - for standard input");
  Tokenizer tokenizer = load_tokenizer(r.tokenizer);
  std::vector<int32_t> ids;
  for (const auto& word : words) append_ids(word == "-" ? io.read_input() : word, ids);
  io.print(r.replace ? tokenizer.decode_text(ids) : tokenizer.decode(ids));
  return kExitOk;
}

}  // namespace

Command tokenizer_decode_command() {
  return {"tokenizer decode",
          "turn token ids back into text",
          "ID...|- [--key value ...]",
          {{"bary tokenizer decode 72 105 --tokenizer tok.json", "the bytes of these tokens, nothing added"},
           {"bary tokenizer encode a.txt | bary tokenizer decode -", "the same bytes as a.txt"}},
          [] {
            DecodeRequest r;
            return describe(r).help();
          },
          run_decode};
}

}  // namespace bary
