// SPDX-License-Identifier: Apache-2.0
// The user's own pairs: one file with SOURCE, a tab and TARGET on each line, or two files whose lines belong together.
// The split is by place: the last lines are held out. Files are from outside: nothing in them is taken on trust.
#include <algorithm>
#include <system_error>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/sha256.h"
#include "bary/text/batch.h"
#include "bary/text/pair_tasks.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

struct Place {
  size_t source, target;             // offsets
  int32_t source_size, target_size;  // bytes, at most kMostTextBytes
};

struct Table {
  std::string bytes;  // of the file, or of both
  std::vector<Place> places;
  std::string what;  // for messages
};

std::string read_limited(const fs::path& path) {
  std::error_code error;
  // A pipe has no size before it is read; its bytes are counted afterwards.
  const uintmax_t size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  BARY_CHECK(error || size <= static_cast<uintmax_t>(kMostPairBytes),
             "pairs: {} has {} bytes, at most {} are possible; give a part of it", path.string(), size, kMostPairBytes);
  std::string bytes = read_file(path);
  check_size_of_text("pairs: " + path.string(), bytes);
  return bytes;
}

void check_source(std::string_view what, int64_t number, std::string_view source) {
  BARY_CHECK(!source.empty(),
             "{}, line {}: the source is empty, one character is needed at least; complete it or "
             "delete the line",
             what, number);
}

Table read_table(const fs::path& file) {
  Table table{read_limited(file), {}, "pairs: " + file.string()};
  const std::string_view text = table.bytes;
  for_each_line(text, [&](int64_t number, size_t begin, size_t size) {
    const std::string_view line = text.substr(begin, size);
    BARY_CHECK(!line.empty(), "{}, line {}: it is blank; delete it, or write SOURCE, a tab and TARGET", table.what,
               number);
    check_line(table.what, number, line);
    const auto tabs = std::count(line.begin(), line.end(), '\t');
    BARY_CHECK(tabs != 0, "{}, line {}: it has no tab; write SOURCE, a tab and TARGET on each line", table.what,
               number);
    BARY_CHECK(tabs == 1,
               "{}, line {}: it has {} tabs, one was expected between SOURCE and TARGET; write other tabs "
               "as spaces",
               table.what, number, tabs);
    const size_t tab = line.find('\t');
    check_source(table.what, number, line.substr(0, tab));
    table.places.push_back({begin, begin + tab + 1, static_cast<int32_t>(tab), static_cast<int32_t>(size - tab - 1)});
  });
  return table;
}

std::vector<std::pair<size_t, size_t>> checked_lines(std::string_view what, std::string_view text) {
  std::vector<std::pair<size_t, size_t>> lines;
  for_each_line(text, [&](int64_t number, size_t begin, size_t size) {
    check_line(what, number, text.substr(begin, size));
    lines.emplace_back(begin, size);
  });
  return lines;
}

Table read_aligned(const fs::path& file, const fs::path& target_file) {
  std::string sources = read_limited(file), targets = read_limited(target_file);
  const std::string what = "pairs: " + file.string();
  const auto left = checked_lines(what, sources), right = checked_lines("pairs: " + target_file.string(), targets);
  BARY_CHECK(left.size() == right.size(),
             "pairs: {} has {} lines but {} has {}; line n of one belongs to line n of the other, so make them equal",
             file.string(), left.size(), target_file.string(), right.size());
  Table table{std::move(sources), {}, what};
  const size_t moved = table.bytes.size();
  table.bytes += targets;
  table.places.reserve(left.size());
  for (size_t i = 0; i < left.size(); ++i) {
    const auto [begin, size] = left[i];
    check_source(what, static_cast<int64_t>(i) + 1, std::string_view(table.bytes).substr(begin, size));
    table.places.push_back(
        {begin, moved + right[i].first, static_cast<int32_t>(size), static_cast<int32_t>(right[i].second)});
  }
  return table;
}

class FilePairs : public ListedPairs {
 public:
  FilePairs(PairFacts facts, Table table, int64_t training)
      : ListedPairs(std::move(facts), training, std::ssize(table.places) - training), table_(std::move(table)) {}

 protected:
  TextPair pair_at(PairSplit split, int64_t index) const override {
    const int64_t i = index + (split == PairSplit::training ? 0 : count(PairSplit::training));
    const Place& place = table_.places[static_cast<size_t>(i)];
    return {table_.bytes.substr(place.source, static_cast<size_t>(place.source_size)),
            table_.bytes.substr(place.target, static_cast<size_t>(place.target_size))};
  }

 private:
  Table table_;
};

}  // namespace

std::unique_ptr<PairTask> make_file_pairs(const PairOptions& options) {
  BARY_CHECK(!options.file.empty(),
             "pairs: no file was given; give one (--data FILE) with SOURCE, a tab and TARGET on each line");
  Table table =
      options.target_file.empty() ? read_table(options.file) : read_aligned(options.file, options.target_file);
  BARY_CHECK(!table.places.empty(), "{} holds no pairs; write SOURCE, a tab and TARGET on each line", table.what);
  PairCensus census;
  Sha256 hash;
  hash.update(fmt::format("pairs {} ", options.held_out));
  for (const Place& place : table.places) {
    const std::string_view bytes = table.bytes;
    const std::string_view source = bytes.substr(place.source, static_cast<size_t>(place.source_size));
    const std::string_view target = bytes.substr(place.target, static_cast<size_t>(place.target_size));
    census.add(source, target);
    // The same pairs in one file or in two are the same pairs.
    hash.update(source).update("\t").update(target).update("\n");
  }
  PairFacts facts = census.facts("pairs", options.held_out, hash.hex());
  const int64_t training = count_to_learn_from(std::ssize(table.places), options.held_out);
  return std::make_unique<FilePairs>(std::move(facts), std::move(table), training);
}

}  // namespace bary
