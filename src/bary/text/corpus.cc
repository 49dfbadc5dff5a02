// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"
#include "bary/base/sha256.h"
#include "bary/text/synthetic.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr const char* kShakespeare = "tinyshakespeare";
constexpr size_t kLookedAtForNul = 8192;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

bool is_text_name(const fs::path& path) {
  const std::string ending = lower(path.extension().string());
  return ending.empty() || ending == ".txt" || ending == ".md";
}

bool looks_binary(const fs::path& path, const std::string& bytes) {
  return path.extension().empty() && bytes.substr(0, kLookedAtForNul).find('\0') != std::string::npos;
}

[[noreturn]] void cannot_list(const fs::path& folder, const std::error_code& error) {
  fail(ErrorKind::system, "cannot read the folder {}: {}; give this user the right to read it or name the files",
       folder.string(), error.message());
}

// The regular files below a folder, in the order of their paths; `others` counts what has another ending.
std::vector<std::string> text_files_below(const fs::path& folder, int64_t& others) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.filename().string().starts_with('.')) {
      it.disable_recursion_pending();
    } else if (std::error_code gone; it->is_regular_file(gone)) {
      if (is_text_name(path)) {
        paths.push_back(path.string());
      } else {
        ++others;
      }
    }
  }
  if (error) cannot_list(folder, error);
  std::sort(paths.begin(), paths.end());  // std::string compares as unsigned bytes, whatever the locale
  return paths;
}

void read_folder(const fs::path& folder, Corpus& corpus, const CorpusOptions& options) {
  int64_t others = 0, empty = 0, binary = 0;
  for (const std::string& path : text_files_below(folder, others)) {
    std::string bytes = read_file(path);
    if (bytes.empty()) {
      ++empty;
    } else if (looks_binary(path, bytes)) {
      ++binary;
    } else {
      corpus.documents.push_back(std::move(bytes));
    }
  }
  const std::string left_out =
      fmt::format("left out: {} with other endings, {} empty, {} binary", others, empty, binary);
  BARY_CHECK(
      !corpus.documents.empty(),
      "corpus: the folder {} holds no text (*.txt, *.md or files without ending; {}); name another folder or a file",
      folder.string(), left_out);
  corpus.source = fmt::format("folder {}: {} files", folder.string(), corpus.documents.size());
  if (others + empty + binary > 0 && options.notice) options.notice(fmt::format("{}; {}", corpus.source, left_out));
}

void add_whole(Corpus& corpus, std::string bytes, std::string source) {
  BARY_CHECK(!bytes.empty(), "corpus: {} is empty, at least one byte is needed; give a text with something in it",
             source);
  corpus.documents.push_back(std::move(bytes));
  corpus.source = std::move(source);
}

void read_synthetic(const std::string& name, Corpus& corpus, const CorpusOptions& options) {
  const int64_t held_out = options.synthetic_lines / 10, lines = options.synthetic_lines - held_out;
  const auto language = make_synthetic(name, {.seed = options.synthetic_seed});
  std::string text = language->text(lines, SyntheticSplit::training, options.synthetic_seed);
  text += language->text(held_out, SyntheticSplit::held_out, options.synthetic_seed);
  add_whole(corpus, std::move(text),
            fmt::format("built-in language {}, seed {}: {} training and {} held-out lines", name,
                        options.synthetic_seed, lines, held_out));
}

[[noreturn]] void unknown(const std::string& spec) {
  std::vector<std::string> names{kShakespeare};
  names.insert(names.end(), synthetic_names().begin(), synthetic_names().end());
  const auto near = nearest(spec, names);
  fail("corpus: {} is no file or folder here and no known text; {}check the path, or use {}", bary::quote(spec),
       near ? fmt::format("did you mean {}? Else ", *near) : "", joined_with_or(names.data(), names.size()));
}

std::string hash_of(const std::vector<std::string>& documents) {
  if (documents.size() == 1) return sha256_hex(documents[0]);
  Sha256 hash;
  for (const std::string& document : documents) {
    std::string length;
    for (int i = 0; i < 8; ++i) length += static_cast<char>(uint64_t{document.size()} >> (8 * i) & 255);
    hash.update(length).update(document);
  }
  return hash.hex();
}

void read_spec(const std::string& spec, Corpus& corpus, const CorpusOptions& options) {
  if (spec == "-")
    return add_whole(corpus, read_descriptor(options.standard_input, "standard input"), "standard input");
  std::error_code error;
  const fs::file_status status = fs::status(spec, error);
  const bool is_name = spec == kShakespeare || is_synthetic(spec);
  if (status.type() != fs::file_type::not_found && !spec.empty()) {
    if (is_name && options.notice) {
      options.notice(fmt::format("reading the {0} named {1} in the current folder, not the text of that name",
                                 fs::is_directory(status) ? "folder" : "file", spec));
    }
    if (fs::is_directory(status)) return read_folder(spec, corpus, options);
    return add_whole(corpus, read_file(spec), "file " + spec);
  }
  if (spec == kShakespeare) {
    const ShakespearePlaces places =
        options.shakespeare_places ? options.shakespeare_places() : default_shakespeare_places(options.corpus_path);
    FoundText found = find_shakespeare(places, options.notice);
    return add_whole(corpus, std::move(found.bytes), std::move(found.source));
  }
  if (is_name) return read_synthetic(spec, corpus, options);
  unknown(spec);
}

}  // namespace

Corpus load_corpus(const std::string& spec, const CorpusOptions& options) {
  Corpus corpus;
  corpus.name = spec;
  read_spec(spec, corpus, options);
  for (const std::string& document : corpus.documents) corpus.bytes += std::ssize(document);
  corpus.sha256 = hash_of(corpus.documents);
  return corpus;
}

}  // namespace bary
