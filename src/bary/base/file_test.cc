// SPDX-License-Identifier: Apache-2.0
#include "bary/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/refusal_test.h"

namespace bary {
namespace {
namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "bary-file-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path folder_;
};

TEST_F(FileTest, BytesComeBackAsTheyWere) {
  const std::string bytes("a\0b\r\n\xff\xfe", 7);
  write_file_atomic(folder_ / "x", bytes);
  EXPECT_EQ(read_file(folder_ / "x"), bytes);
  write_file_atomic(folder_ / "x", "");
  EXPECT_EQ(read_file(folder_ / "x"), "");
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, SizesAroundTheReadStep) {
  for (size_t size : {size_t{1}, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    const std::string bytes(size, 'q');
    write_file_atomic(folder_ / "x", bytes);
    EXPECT_EQ(read_file(folder_ / "x"), bytes);
  }
}

TEST_F(FileTest, PipesAreReadToTheEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string bytes(3'000'000, 'p');
  std::thread writer([&] {
    size_t done = 0;
    while (done < bytes.size()) done += static_cast<size_t>(::write(ends[1], bytes.data() + done, bytes.size() - done));
    ::close(ends[1]);
  });
  EXPECT_EQ(read_descriptor(ends[0], "a pipe").size(), bytes.size());
  writer.join();
  ::close(ends[0]);
  // /proc states size 0 for files that have content.
  EXPECT_FALSE(read_file("/proc/self/status").empty());
}

TEST_F(FileTest, MissingFileNamesPathReasonAndStep) {
  const Error error = error_of([&] { read_file(folder_ / "missing.txt"); });
  EXPECT_EQ(error.kind(), ErrorKind::input);
  expect_contains(error.what(), "missing.txt");
  expect_contains(error.what(), "No such file or directory");
  expect_contains(error.what(), "check the spelling");
  EXPECT_EQ(error_of([&] { read_file(folder_); }).kind(), ErrorKind::input);
  EXPECT_EQ(error_of([&] { MappedFile map(folder_ / "missing"); }).kind(), ErrorKind::input);
  EXPECT_EQ(error_of([&] { MappedFile map(folder_); }).kind(), ErrorKind::input);
  EXPECT_EQ(error_of([&] { MappedFile map("/dev/zero"); }).kind(), ErrorKind::input);
  EXPECT_EQ(error_of([&] { read_descriptor(-1, "nothing"); }).kind(), ErrorKind::system);
}

TEST_F(FileTest, UncommittedFileLeavesNothing) {
  write_file_atomic(folder_ / "x", "old");
  {
    AtomicFile file(folder_ / "x");
    file.write("new");
    EXPECT_EQ(file.bytes_written(), 3);
    EXPECT_EQ(read_file(folder_ / "x"), "old");
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(read_file(folder_ / "x"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, PiecesArePutTogetherAndCommittedOnce) {
  AtomicFile file(folder_ / "x");
  file.write("one ");
  AtomicFile moved(std::move(file));
  moved.write("two");
  moved.commit();
  EXPECT_EQ(read_file(folder_ / "x"), "one two");
  EXPECT_THROW(moved.write("three"), Error);
  EXPECT_THROW(moved.commit(), Error);
  EXPECT_EQ(read_file(folder_ / "x"), "one two");
}

TEST_F(FileTest, TwoWritersOfOnePathDoNotMeet) {
  AtomicFile first(folder_ / "x");
  AtomicFile second(folder_ / "x");
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  EXPECT_EQ(read_file(folder_ / "x"), "first");
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, KilledWriterLeavesTheOldFileAndTheNextOneCleansUp) {
  write_file_atomic(folder_ / "x", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(folder_ / "x");
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_file(folder_ / "x"), "old");
  EXPECT_EQ(names().size(), 2u);
  std::ofstream(folder_ / ".x.keep.tmp") << "not ours";
  write_file_atomic(folder_ / "x", "new");
  EXPECT_EQ(read_file(folder_ / "x"), "new");
  EXPECT_EQ(names(), (std::vector<std::string>{".x.keep.tmp", "x"}));
}

TEST_F(FileTest, AFullDiskKeepsTheOldFile) {
  write_file_atomic(folder_ / "x", "old");
  // A file size limit is what a full disk looks like to the writer, at a byte of our choice.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = error_of([&] { write_file_atomic(folder_ / "x", std::string(5000, 'n')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error.kind(), ErrorKind::system);
  expect_contains(error.what(), "File too large");
  EXPECT_EQ(read_file(folder_ / "x"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"x"});
}

TEST_F(FileTest, DevicesAreWrittenDirectlyAndStayDevices) {
  const Error error = error_of([] { write_file_atomic("/dev/full", "x"); });
  EXPECT_EQ(error.kind(), ErrorKind::system);
  expect_contains(error.what(), "No space left on device");
  expect_contains(error.what(), "free some space");
  write_file_atomic("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(FileTest, WrongTargetsAreSystemErrors) {
  EXPECT_EQ(error_of([&] { write_file_atomic(folder_, "x"); }).kind(), ErrorKind::system);
  const Error error = error_of([&] { write_file_atomic(folder_ / "no" / "x", "x"); });
  EXPECT_EQ(error.kind(), ErrorKind::system);
  expect_contains(error.what(), "create the folder first");
}

TEST_F(FileTest, LinksAndPermissionsAreKept) {
  write_file_atomic(folder_ / "real", "old");
  ASSERT_EQ(::chmod((folder_ / "real").c_str(), 0640), 0);
  fs::create_symlink("real", folder_ / "link");
  write_file_atomic(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0640u);
}

TEST_F(FileTest, MapShowsTheFile) {
  const std::string bytes("ab\0c", 4);
  write_file_atomic(folder_ / "x", bytes);
  MappedFile map(folder_ / "x");
  EXPECT_EQ(map.text(), bytes);
  // A replaced file does not change what is mapped.
  write_file_atomic(folder_ / "x", "other bytes");
  EXPECT_EQ(map.text(), bytes);
  MappedFile moved(std::move(map));
  EXPECT_EQ(moved.text(), bytes);
  EXPECT_EQ(map.size(), 0);  // NOLINT: a moved-from map is empty
  write_file_atomic(folder_ / "x", "");
  moved = MappedFile(folder_ / "x");
  EXPECT_EQ(moved.size(), 0);
  EXPECT_TRUE(moved.bytes().empty());
}

TEST_F(FileTest, MapOffsetsPastFourGigabytes) {
  const int64_t size = (int64_t{5} << 30) + 3;
  write_file_atomic(folder_ / "big", "");
  if (::truncate((folder_ / "big").c_str(), size) != 0) GTEST_SKIP() << "SKIPPED: no sparse files here";
  const MappedFile map(folder_ / "big");
  ASSERT_EQ(map.size(), size);
  EXPECT_EQ(map.bytes().back(), std::byte{0});
}

TEST_F(FileTest, FoldersAreMadeOrRefused) {
  ensure_folder(folder_ / "a" / "b");
  ensure_folder(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
  write_file_atomic(folder_ / "file", "x");
  for (const fs::path& path : {folder_ / "file", folder_ / "file" / "below"}) {
    const Error error = error_of([&] { ensure_folder(path); });
    EXPECT_EQ(error.kind(), ErrorKind::input);
    expect_contains(error.what(), path.string());
    expect_contains(error.what(), "choose another");
  }
  EXPECT_EQ(error_of([&] { ensure_folder("/proc/bary"); }).kind(), ErrorKind::input);
}

TEST_F(FileTest, AFolderIsLockedForOne) {
  const auto one = std::make_unique<FolderLock>(folder_);
  EXPECT_THROW(FolderLock{folder_}, Error);
}

TEST_F(FileTest, ALockEndsWithItsOwner) {
  { const FolderLock lock(folder_); }
  EXPECT_NO_THROW(FolderLock{folder_});
}

TEST(UserCacheFolder, FollowsTheEnvironment) {
  const char* old_cache = std::getenv("XDG_CACHE_HOME");
  const char* old_home = std::getenv("HOME");
  const std::string keep_cache = old_cache ? old_cache : "", keep_home = old_home ? old_home : "";
  ::setenv("XDG_CACHE_HOME", "/c", 1);
  ::setenv("HOME", "/h", 1);
  EXPECT_EQ(user_cache_folder(), "/c/bary");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(user_cache_folder(), "/h/.cache/bary");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(user_cache_folder(), "/h/.cache/bary");
  ::unsetenv("HOME");
  EXPECT_TRUE(user_cache_folder().empty());
  if (old_home) ::setenv("HOME", keep_home.c_str(), 1);
  if (old_cache) ::setenv("XDG_CACHE_HOME", keep_cache.c_str(), 1);
}

}  // namespace
}  // namespace bary
