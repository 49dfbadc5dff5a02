// SPDX-License-Identifier: Apache-2.0
#include "bary/io/run_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/sha256.h"
#include "bary/io/manifest.h"
#include "bary/io/test_folder_test.h"

namespace bary {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFiles = {"config.json",           "manifest.json", "model.safetensors",
                                         "optimizer.safetensors", "state.json",    "tokenizer.json"};

// A tiny checkpoint whose values tell which save it came from.
struct Sample {
  explicit Sample(float mark = 1, size_t values = 6) : weights(values, mark), moments(2 * values, mark / 2) {
    checkpoint.config = {{"n_layer", 1}};
    checkpoint.state = {{"step", static_cast<int>(mark)}};
    checkpoint.tokenizer = "{\"bytes\":\"as they are\"}";
    auto size = static_cast<int64_t>(values);
    checkpoint.weights = {{"wte", {size}, weights}};
    checkpoint.optimizer = {{"wte.m_and_v", {2, size}, moments}};
  }
  std::vector<float> weights, moments;
  Checkpoint checkpoint;
};

std::string message(const std::function<void()>& action, ErrorKind kind = ErrorKind::input) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "(no error)";
}

void overwrite(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void expect_mark(const fs::path& folder, float mark) {
  LoadedCheckpoint loaded = load_checkpoint(folder);
  EXPECT_EQ(loaded.state["step"], static_cast<int>(mark));
  EXPECT_EQ(read_checkpoint_notes(folder).state, loaded.state);
  EXPECT_EQ(read_checkpoint_notes(folder).config, loaded.config);
  for (float value : loaded.weights.read("wte")) ASSERT_EQ(value, mark);
}

// Runs `action` in a child process under a limit on the size of files; returns waitpid's status.
int in_child(rlim_t largest_file, bool killed_at_the_limit, const std::function<void()>& action) {
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, killed_at_the_limit ? SIG_DFL : SIG_IGN);
    rlimit limit{largest_file, largest_file}, no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      action();
    } catch (const Error& error) {
      ::_exit(error.kind() == ErrorKind::system ? 1 : 2);
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(RunFolder, RoundTrip) {
  TestFolder root;
  Sample sample(3);
  std::string hash = save_checkpoint(root / "run/last", sample.checkpoint);
  LoadedCheckpoint loaded = load_checkpoint(root / "run/last");
  EXPECT_EQ(loaded.config, sample.checkpoint.config);
  EXPECT_EQ(loaded.tokenizer, sample.checkpoint.tokenizer);
  EXPECT_EQ(loaded.state["step"], 3);
  EXPECT_EQ(loaded.weights.read("wte"), sample.weights);
  ASSERT_TRUE(loaded.optimizer);
  EXPECT_EQ(loaded.optimizer->read("wte.m_and_v"), sample.moments);
  EXPECT_EQ(loaded.state["weights_sha256"], hash);
  EXPECT_EQ(hash, weights_sha256(sample.checkpoint.weights));
  EXPECT_EQ(hash, sha256_hex(read_file(root / "run/last" / "model.safetensors")));
  EXPECT_FALSE(load_checkpoint(root / "run/last", {.optimizer = false}).optimizer);
  EXPECT_TRUE(checkpoint_exists(root / "run/last"));
  EXPECT_FALSE(checkpoint_exists(root / "run/best"));
}

TEST(RunFolder, WithoutOptimizerAndTokenizer) {
  TestFolder root;
  Sample sample;
  save_checkpoint(root / "last", sample.checkpoint);
  sample.checkpoint.optimizer.clear();
  sample.checkpoint.tokenizer.clear();
  save_checkpoint(root / "last", sample.checkpoint);
  EXPECT_FALSE(fs::exists(root / "last" / "optimizer.safetensors")) << "nothing of the one before stays";
  LoadedCheckpoint loaded = load_checkpoint(root / "last");
  EXPECT_FALSE(loaded.optimizer);
  EXPECT_EQ(loaded.tokenizer, "");
}

TEST(RunFolder, ALoadedCheckpointSurvivesTheNextSave) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1).checkpoint);
  LoadedCheckpoint loaded = load_checkpoint(root / "last");
  save_checkpoint(root / "last", Sample(2).checkpoint);
  for (float value : loaded.weights.read("wte")) EXPECT_EQ(value, 1);
  expect_mark(root / "last", 2);
}

TEST(RunFolder, WrongShapesNameBoth) {
  TestFolder root;
  save_checkpoint(root / "last", Sample().checkpoint);
  LoadedCheckpoint loaded = load_checkpoint(root / "last");
  std::vector<float> out(8);
  std::string text = message([&] { loaded.weights.read_into("wte", {8}, out); });
  EXPECT_NE(text.find("model.safetensors: tensor wte is (6), config says (8)"), std::string::npos) << text;
}

TEST(RunFolder, TruncatedAtEveryByteOfEveryFile) {
  TestFolder root;
  save_checkpoint(root / "last", Sample().checkpoint);
  for (const auto& name : kFiles) {
    fs::path path = root / "last" / name;
    std::string bytes = read_file(path);
    for (size_t length = bytes.size(); length-- > 0;) {
      fs::resize_file(path, length);
      std::string text = message([&] { load_checkpoint(root / "last"); });
      ASSERT_NE(text.find(name), std::string::npos) << name << " cut to " << length << ": " << text;
    }
    overwrite(path, bytes + "\n");
    EXPECT_NE(message([&] { load_checkpoint(root / "last"); }).find(name), std::string::npos) << name << " made longer";
    fs::remove(path);
    EXPECT_NE(message([&] { load_checkpoint(root / "last"); }).find(name), std::string::npos) << name << " removed";
    overwrite(path, bytes);
  }
  expect_mark(root / "last", 1);
}

TEST(RunFolder, TruncatedAtEverySixteenthOfALargeFile) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1, 50000).checkpoint);
  fs::path path = root / "last" / "model.safetensors";
  std::string bytes = read_file(path);
  for (size_t part = 16; part-- > 0;) {
    fs::resize_file(path, bytes.size() * part / 16);
    EXPECT_NE(message([&] { load_checkpoint(root / "last"); }).find("model.safetensors: damaged"), std::string::npos)
        << part;
  }
}

TEST(RunFolder, EveryFlippedBitIsNamed) {
  TestFolder root;
  save_checkpoint(root / "last", Sample().checkpoint);
  for (const auto& name : kFiles) {
    fs::path path = root / "last" / name;
    std::string bytes = read_file(path);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);  // in place: quicker than a new file
    auto put = [&](size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      put(bit / 8, static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8))));
      std::string text = message([&] { load_checkpoint(root / "last"); });
      ASSERT_NE(text.find(name), std::string::npos) << name << " bit " << bit << ": " << text;
      put(bit / 8, bytes[bit / 8]);
    }
  }
  expect_mark(root / "last", 1);
}

TEST(RunFolder, DiskFullAtAnyByteKeepsTheOneBefore) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1).checkpoint);
  Sample next(2);
  rlim_t largest = 0;
  for (const auto& name : kFiles) largest = std::max<rlim_t>(largest, fs::file_size(root / "last" / name));
  for (rlim_t room = 0; room < largest; room += 31) {
    int status = in_child(room, false, [&] { save_checkpoint(root / "last", next.checkpoint); });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << room << " status " << status;
    expect_mark(root / "last", 1);
    ASSERT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 1)
        << "nothing is left over";
  }
  EXPECT_EQ(in_child(largest, false, [&] { save_checkpoint(root / "last", next.checkpoint); }), 0);
  expect_mark(root / "last", 2);
}

TEST(RunFolder, KilledAtAnyByteKeepsTheOneBefore) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1).checkpoint);
  Sample next(2);
  rlim_t largest = 0;
  for (const auto& name : kFiles) largest = std::max<rlim_t>(largest, fs::file_size(root / "last" / name));
  for (rlim_t room = 0; room < largest; room += 31) {
    int status = in_child(room, true, [&] { save_checkpoint(root / "last", next.checkpoint); });
    ASSERT_TRUE(WIFSIGNALED(status)) << room << " status " << status;
    ASSERT_GE(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 2)
        << "the kill left its folder";
    expect_mark(root / "last", 1);
  }
  save_checkpoint(root / "last", next.checkpoint);
  expect_mark(root / "last", 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(root.path()), fs::directory_iterator()), 1) << "leftovers are cleaned";
}

TEST(RunFolder, KilledBetweenTheRenamesLoadsTheOneBefore) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1).checkpoint);
  fs::rename(root / "last", root / "last.tmp-old");
  expect_mark(root / "last", 1);
  EXPECT_TRUE(checkpoint_exists(root / "last"));
  save_checkpoint(root / "last", Sample(2).checkpoint, Swap::two_renames);
  expect_mark(root / "last", 2);
  EXPECT_FALSE(fs::exists(root / "last.tmp-old"));
}

// A reader never meets a half-replaced checkpoint, whatever moment it comes at.
TEST(RunFolder, ReadersWhileAnotherProcessSaves) {
  TestFolder root;
  save_checkpoint(root / "last", Sample(1).checkpoint);
  pid_t child = ::fork();
  if (child == 0) {
    for (int i = 2; i < 20; ++i) save_checkpoint(root / "last", Sample(static_cast<float>(i)).checkpoint);
    ::_exit(0);
  }
  int reads = 0, status = 0, step = 0;
  std::string failure;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    try {
      LoadedCheckpoint loaded = load_checkpoint(root / "last");
      int now = loaded.state["step"];
      if (now < step || loaded.weights.read("wte")[0] != static_cast<float>(now)) failure = "mixed or old";
      step = now;
      ++reads;
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  EXPECT_EQ(failure, "");
  EXPECT_EQ(status, 0);
  EXPECT_GT(reads, 0);
  expect_mark(root / "last", 19);
}

TEST(RunFolder, NeverReplacesWhatIsNoCheckpoint) {
  TestFolder root;
  fs::create_directory(root / "thesis");
  overwrite(root / "thesis" / "text.tex", "years of work");
  EXPECT_NE(message([&] { save_checkpoint(root / "thesis", Sample().checkpoint); }).find("holds no checkpoint"),
            std::string::npos);
  EXPECT_EQ(read_file(root / "thesis" / "text.tex"), "years of work");
  overwrite(root / "file", "x");
  EXPECT_NE(message([&] { save_checkpoint(root / "file", Sample().checkpoint); }), "(no error)");
  fs::create_directory(root / "empty");
  save_checkpoint(root / "empty", Sample(4).checkpoint);
  expect_mark(root / "empty", 4);
}

TEST(RunFolder, LoadingSaysWhatIsMissing) {
  TestFolder root;
  EXPECT_NE(message([&] { load_checkpoint(root / "no"); }).find("no such folder"), std::string::npos);
  EXPECT_NE(message([&] { load_checkpoint(root.path()); }).find("manifest.json: missing"), std::string::npos);
}

TEST(Manifest, RefusesWhatLeavesTheFolder) {
  TestFolder root;
  for (const char* name : {"../secret", "/etc/passwd", "", ".."}) {
    write_file_atomic(root / "manifest.json", manifest_text({{name, {1, "00"}}}));
    EXPECT_NE(message([&] { read_manifest(root.path()); }).find("no file of this folder"), std::string::npos) << name;
  }
  write_file_atomic(root / "manifest.json", std::string(2 << 20, ' '));
  EXPECT_NE(message([&] { read_manifest(root.path()); }).find("at most"), std::string::npos);
}

TEST(CheckWritable, SaysNoBeforeTheRun) {
  TestFolder root;
  check_writable(root / "new" / "deep");
  EXPECT_FALSE(fs::exists(root / "new")) << "it only asks";
  fs::create_directory(root / "there");
  check_writable(root / "there");
  EXPECT_TRUE(fs::is_empty(root / "there")) << "what was there stays";
  overwrite(root / "file", "x");
  EXPECT_NE(message([&] { check_writable(root / "file"); }), "(no error)");
  EXPECT_NE(message([&] { check_writable("/proc/bary"); }), "(no error)");
  EXPECT_NE(message([&] { check_writable(root.path(), int64_t{1} << 60); }).find("MB free"), std::string::npos);
  int status = in_child(0, false, [&] { check_writable(root.path()); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << "a full disk is seen too";
}

}  // namespace
}  // namespace bary
