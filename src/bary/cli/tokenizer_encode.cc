// SPDX-License-Identifier: Apache-2.0
// bary tokenizer encode: text to ids.
#include <fmt/format.h>

#include <charconv>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/cli/tokenizer_commands.h"
#include "bary/cli/tokenizer_source.h"

namespace bary {
namespace {

enum class Specials { refuse, text, match };

struct EncodeRequest {
  std::string tokenizer = "tokenizer.json", text;
  Specials specials = Specials::text;
  bool count = false, json = false;
};

Options describe(EncodeRequest& r) {
  Options o("tokenizer encode");
  o.add("tokenizer", &r.tokenizer, kTokenizerHelp, {.value_name = "FILE"});
  o.add("text", &r.text, "encode this instead of a file");
  o.add("specials", &r.specials, {{"text", Specials::text}, {"match", Specials::match}, {"refuse", Specials::refuse}},
        "what the spelling of a special token in the text is: ordinary text, that token, or an error");
  o.add("count", &r.count, "print only how many tokens there are");
  o.add("json", &r.json, "print a JSON list (with --count an object)");
  return o;
}

SpecialPolicy policy_of(Specials specials) {
  switch (specials) {
    case Specials::refuse:
      return SpecialPolicy::refuse();
    case Specials::match:
      return SpecialPolicy::match_all();
    case Specials::text:
      break;
  }
  return SpecialPolicy::as_text();
}

// In pieces: the ids of a large text as one string would need several times its memory.
void print_ids(std::span<const int32_t> ids, bool json, Io& io) {
  constexpr size_t kPiece = 1 << 16;
  std::string out = json ? "[" : "";
  char digits[16];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += json ? ", " : " ";
    auto end = std::to_chars(digits, digits + sizeof digits, ids[i]).ptr;
    out.append(digits, end);
    if (out.size() >= kPiece) io.print(out), out.clear();
  }
  io.print(out + (json ? "]\n" : "\n"));
}

int run_encode(std::span<const std::string> args, Io& io) {
  EncodeRequest r;
  Options options = describe(r);
  auto files = options.parse_args(args);
  bool given = options.is_set("text");
  BARY_CHECK(files.size() + (given ? 1 : 0) == 1,
             "tokenizer encode: one text is encoded, {} came; name a file, - for standard input, or --text",
             files.size() + (given ? 1 : 0));
  Tokenizer tokenizer = load_tokenizer(r.tokenizer);
  std::string text = given ? r.text : read_text(files[0], io);
  if (r.count) {
    int64_t count = tokenizer.count(text, policy_of(r.specials));
    io.print(r.json ? dump_json({{"tokens", count}, {"bytes", text.size()}}, -1) + "\n" : fmt::format("{}\n", count));
    return kExitOk;
  }
  print_ids(tokenizer.encode(text, policy_of(r.specials)), r.json, io);
  return kExitOk;
}

}  // namespace

Command tokenizer_encode_command() {
  return {
      "tokenizer encode",
      "turn text into token ids",
      "FILE|- [--key value ...]",
      {{"cat notes.txt | bary tokenizer encode - --tokenizer tok.json", "ids of standard input, separated by spaces"},
       {"bary tokenizer encode --text \"to be or not to be\" --tokenizer tok.json",
        "ids of a text on the command line"},
       {"bary tokenizer encode book.txt --tokenizer runs/shakespeare --count",
        "how many tokens a book has for this model"},
       {"bary tokenizer encode a.txt | bary tokenizer decode - | cmp - a.txt", "nothing is lost: prints nothing"}},
      [] {
        EncodeRequest r;
        return describe(r).help();
      },
      run_encode};
}

}  // namespace bary
