// SPDX-License-Identifier: Apache-2.0
#include "bary/io/staged_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/sanitized_test.h"
#include "bary/io/test_folder_test.h"

namespace bary {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kOwned = {"a", "b"};

std::vector<std::string> listing(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void put(const fs::path& folder, const std::string& a) {
  fs::create_directories(folder);
  write_file_atomic(folder / "a", a);
}

class BothSwaps : public ::testing::TestWithParam<Swap> {};

TEST_P(BothSwaps, ReplacesAsAWhole) {
  TestFolder root;
  fs::path target = root / "last";
  for (const char* value : {"one", "two", "three"}) {
    StagedFolder staged(target, kOwned);
    put(staged.path(), value);
    EXPECT_TRUE(!fs::exists(target) || read_file(target / "a") != value) << "not before commit";
    staged.commit(GetParam());
    EXPECT_EQ(read_file(target / "a"), value);
    EXPECT_EQ(listing(root.path()), (std::vector<std::string>{"last"}));
    EXPECT_THROW(staged.commit(), Error);
  }
}

TEST_P(BothSwaps, AStrangersFilesMoveAlong) {
  TestFolder root;
  fs::path target = root / "last";
  put(target, "one");
  write_file_atomic(target / "notes.txt", "mine");
  fs::create_directories(target / "plots" / "deep");
  write_file_atomic(target / ".a.123.0.tmp", "half");  // of a killed atomic write
  StagedFolder staged(target, kOwned);
  put(staged.path(), "two");
  staged.commit(GetParam());
  EXPECT_EQ(listing(target), (std::vector<std::string>{"a", "notes.txt", "plots"}));
  EXPECT_EQ(read_file(target / "notes.txt"), "mine");
  EXPECT_TRUE(fs::exists(target / "plots" / "deep"));
  EXPECT_EQ(listing(root.path()), (std::vector<std::string>{"last"}));
}

INSTANTIATE_TEST_SUITE_P(StagedFolder, BothSwaps, ::testing::Values(Swap::automatic, Swap::two_renames));

TEST(StagedFolder, WithoutCommitNothingHappened) {
  TestFolder root;
  put(root / "last", "one");
  {
    StagedFolder staged(root / "last", kOwned);
    put(staged.path(), "two");
    EXPECT_EQ(listing(root.path()).size(), 2u);
  }
  EXPECT_EQ(listing(root.path()), (std::vector<std::string>{"last"}));
  EXPECT_EQ(read_file(root / "last" / "a"), "one");
}

TEST(StagedFolder, KilledBeforeTheSwap) {
  TestFolder root;
  put(root / "last", "one");
  put(root / "last.tmp-999999-0", "half");
  EXPECT_EQ(settled_folder(root / "last"), root / "last");
  StagedFolder staged(root / "last", kOwned);
  EXPECT_FALSE(fs::exists(root / "last.tmp-999999-0"));
  EXPECT_EQ(read_file(root / "last" / "a"), "one");
}

TEST(StagedFolder, KilledBetweenTheTwoRenames) {
  TestFolder root;
  put(root / "last.tmp-old", "one");
  put(root / "last.tmp-999999-0", "two");
  ASSERT_TRUE(settled_folder(root / "last"));
  EXPECT_EQ(read_file(*settled_folder(root / "last") / "a"), "one");
  EXPECT_FALSE(fs::exists(root / "last")) << "reading changes nothing";
  {
    StagedFolder staged(root / "last", kOwned);
    EXPECT_EQ(read_file(root / "last" / "a"), "one");
    put(staged.path(), "three");
    staged.commit(Swap::two_renames);
  }
  EXPECT_EQ(listing(root.path()), (std::vector<std::string>{"last"}));
  EXPECT_EQ(read_file(root / "last" / "a"), "three");
}

TEST(StagedFolder, KilledBehindTheTwoRenames) {
  TestFolder root;
  put(root / "last", "two");
  put(root / "last.tmp-old", "one");
  EXPECT_EQ(read_file(*settled_folder(root / "last") / "a"), "two");
  StagedFolder staged(root / "last", kOwned);
  EXPECT_FALSE(fs::exists(root / "last.tmp-old"));
  EXPECT_EQ(read_file(root / "last" / "a"), "two");
}

TEST(StagedFolder, ACopyThatSomebodyMadeIsTheirs) {
  for (Swap swap : {Swap::automatic, Swap::two_renames}) {
    TestFolder root;
    put(root / "last", "one");
    put(root / "last.old", "a copy");
    StagedFolder staged(root / "last", kOwned);
    put(staged.path(), "two");
    staged.commit(swap);
    EXPECT_EQ(read_file(root / "last" / "a"), "two");
    EXPECT_EQ(read_file(root / "last.old" / "a"), "a copy");
  }
}

TEST(StagedFolder, KilledBehindTheExchangeKeepsAStrangersFile) {
  TestFolder root;
  put(root / "last", "two");
  put(root / "last.tmp-999999-3", "one");  // the old folder under the staged name
  write_file_atomic(root / "last.tmp-999999-3" / "notes.txt", "mine");
  StagedFolder staged(root / "last", kOwned);
  EXPECT_FALSE(fs::exists(root / "last.tmp-999999-3"));
  EXPECT_EQ(read_file(root / "last" / "notes.txt"), "mine");
  EXPECT_EQ(read_file(root / "last" / "a"), "two");
}

TEST(StagedFolder, WhatALivingProcessBuildsAndWhatIsNotOursStay) {
  TestFolder root;
  StagedFolder other(root / "last", kOwned);
  put(root / "last.tmp-notes", "mine");
  put(root / "last.tmp", "mine");
  put(root / "lastly", "mine");
  StagedFolder staged(root / "last", kOwned);
  EXPECT_NE(other.path(), staged.path());
  put(staged.path(), "second");
  staged.commit();
  put(other.path(), "first");
  other.commit();
  EXPECT_EQ(read_file(root / "last" / "a"), "first");
  EXPECT_EQ(read_file(root / "last.tmp-notes" / "a"), "mine");
  EXPECT_EQ(read_file(root / "lastly" / "a"), "mine");
}

// While it lives the process may open nothing more.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(StagedFolder, WhatCannotBeLockedIsRefusedAndRemoved) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer needs descriptors of its own";
  TestFolder root;
  put(root / "last", "one");
  try {
    const NoDescriptors none;
    StagedFolder staged(root / "last", kOwned);
    ADD_FAILURE() << "locked without a descriptor";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::system);
    EXPECT_NE(std::string(e.what()).find("cannot lock"), std::string::npos) << e.what();
  }
  EXPECT_EQ(listing(root.path()), (std::vector<std::string>{"last"}));
  EXPECT_EQ(read_file(root / "last" / "a"), "one");
}

TEST(StagedFolder, FollowsALinkAndASlash) {
  TestFolder root;
  put(root / "disk" / "real", "one");
  fs::create_directory_symlink(root / "disk" / "real", root / "last");
  StagedFolder staged(root.path() / "last/", kOwned);
  EXPECT_EQ(staged.path().parent_path(), fs::canonical(root / "disk"));
  put(staged.path(), "two");
  staged.commit();
  EXPECT_TRUE(fs::is_symlink(root / "last"));
  EXPECT_EQ(read_file(root / "disk" / "real" / "a"), "two");
}

TEST(StagedFolder, NothingThere) {
  TestFolder root;
  EXPECT_EQ(settled_folder(root / "no"), std::nullopt);
  write_file_atomic(root / "file", "x");
  EXPECT_EQ(settled_folder(root / "file"), std::nullopt);
  EXPECT_THROW(StagedFolder(root / "file" / "below", kOwned), Error);
}

}  // namespace
}  // namespace bary
