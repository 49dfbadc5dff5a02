// SPDX-License-Identifier: Apache-2.0
// Writes tokenizers and the ids they give for many texts into a temporary folder, and lets hf_compare.py check them
// with Hugging Face's tokenizers. Exit code 77: no Python with that package here.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/random.h"
#include "bary/text/tokenizer.h"

namespace bary {
namespace {

namespace fs = std::filesystem;

std::string python() {
  const char* const named = std::getenv("BARY_PYTHON");
  return named != nullptr ? named : "python3";
}

std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

const std::string kText =
    "It's the cat's hat; we'll say that they've seen 12 cats and 345 hats.\n\n  \"The end,\" he said  -- don't.\r\n"
    "Köln, naïve café, 季節の変わり目, नमस्ते, привет мир!\tThe cat, the hat, the end. \U0001F917\n";

// Random characters from everywhere in Unicode, and mixtures of what patterns trip over.
std::string random_text(RandomStream& random) {
  static const std::vector<std::string> parts = {
      " ",      "  ",     "\n",   "\t",   "\r\n",   "'s",         "'ll",     "'",      "the",    " cat",   "12",
      "!",      "_",      "\"",   "\\",   "季",     "é",          "e\u0301", "\u0085", "\u2002", "\u00A0", "\u180E",
      "\u200B", "\uFEFF", "\x1C", "\x1F", "\uA7CB", "\U0002EBF0", "\u0660",  "\u00BD", "\u2167", "ſ",      "'S"};
  std::string text;
  for (uint64_t i = random.below(60); i > 0; --i) {
    if (random.below(3) != 0) {
      text += parts[random.below(parts.size())];
      continue;
    }
    uint32_t code = static_cast<uint32_t>(random.below(random.below(2) == 0 ? 0x3000 : 0x110000));
    if (code < 0xD800 || code >= 0xE000) append_utf8(text, code);
  }
  return text;
}

std::vector<std::string> texts_for(const Tokenizer& tokenizer, uint64_t seed) {
  std::vector<std::string> texts = {
      "", " ", "\n\n\n", "it's", kText, std::string("a\0b", 3), std::string(5000, 'a'), std::string(300, ' ') + "x"};
  for (uint64_t trial = 0; trial < 1500; ++trial) {
    RandomStream random(seed, Purpose::test, trial);
    texts.push_back(random_text(random));
  }
  if (tokenizer.kind() != TokenizerKind::chars) return texts;
  texts = {"", kText, "the cat\n\nsat", "季é!"};
  return texts;
}

void write_case(const fs::path& folder, const std::string& name, const Tokenizer& tokenizer, uint64_t seed) {
  Json cases = Json::array();
  for (const std::string& text : texts_for(tokenizer, seed))
    cases.push_back({{"text", text}, {"ids", tokenizer.encode(text, SpecialPolicy::match_all())}});
  if (!tokenizer.specials().empty()) {
    const std::string text = "a  <|end|>t<|endoftext|> <|end|>he cat<|endoftext|>";
    cases.push_back({{"text", text}, {"ids", tokenizer.encode(text, SpecialPolicy::match_all())}});
  }
  tokenizer.save(folder / (name + ".json"));
  write_file_atomic(folder / (name + ".cases"), dump_json(cases, -1));
}

void write_all(const fs::path& folder) {
  const std::vector<std::string_view> documents = {kText};
  BpeOptions options{.vocab_size = 330};
  write_case(folder, "bpe", Tokenizer::bpe(train_bpe(documents, options), options), 1);
  options.specials = {"<|end|>", "<|endoftext|>"};
  write_case(folder, "bpe_specials", Tokenizer::bpe(train_bpe(documents, options), options), 2);
  options.pattern = Pattern::none;
  write_case(folder, "bpe_none", Tokenizer::bpe(train_bpe(documents, options), options), 3);
  TokenizerParts parts = Tokenizer::bpe(train_bpe(documents, options), options).parts();
  parts.pattern = Pattern::gpt2, parts.whole_first = true;
  parts.specials = {{"<|end|>", 1000}, {"<|endoftext|>", 999}};  // numbers that a reader would not give by itself
  write_case(folder, "bpe_whole_first_far_ids", Tokenizer(parts), 4);
  write_case(folder, "byte", Tokenizer(), 5);
  write_case(folder, "byte_specials", Tokenizer::bytes({"<|end|>", "<|endoftext|>"}), 6);
  write_case(folder, "chars", Tokenizer::characters(kText), 7);
  write_case(folder, "chars_specials", Tokenizer::characters(kText, {"<|end|>", "<|endoftext|>"}), 8);
  options = {.vocab_size = 310, .ties = TieRule::hf};
  write_case(folder, "learned_as_hf", Tokenizer::bpe(train_bpe(documents, options), options), 9);
  write_file_atomic(folder / "training_text", kText);
}

// What Hugging Face's library saves again must still be ours.
int read_back(const fs::path& folder) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".saved") continue;
    const Tokenizer ours = Tokenizer::load(fs::path(entry.path()).replace_extension(".json"));
    const Tokenizer theirs = Tokenizer::load(entry.path());
    if (ours.encode(kText) != theirs.encode(kText) || ours.vocab_size() != theirs.vocab_size()) {
      std::printf("FAILED: %s, saved by Hugging Face's library, gives other ids\n", entry.path().filename().c_str());
      return 1;
    }
    ++read;
  }
  std::printf("%d files saved by Hugging Face's library read back\n", read);
  return read > 0 ? 0 : 1;
}

int compare() {
  if (run(shell_quoted(python()) + " -c 'import tokenizers' 2>/dev/null") != 0) {
    std::printf("SKIPPED: %s has no package `tokenizers`; set BARY_PYTHON to a Python that has it\n", python().c_str());
    return 77;
  }
  const fs::path folder = fs::temp_directory_path() / fmt::format("bary_hf_compare_{}", getpid());
  fs::create_directories(folder);
  write_all(folder);
  const std::string script = std::string(BARY_SOURCE_DIR) + "/tests/tokenizer/hf_compare.py";
  int status = run(shell_quoted(python()) + " " + shell_quoted(script) + " " + shell_quoted(folder.string()));
  if (status == 0) status = read_back(folder);
  fs::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace bary

int main() {
  try {
    return bary::compare();
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
}
