// SPDX-License-Identifier: Apache-2.0
// A folder that is replaced as a whole: built beside its place under another name, then swapped in by rename, so that a
// kill, a crash or a full disk at any moment leaves the old folder or the new one, complete.
//
//   NAME.tmp-PID-N   being built (locked), or left by a killed process (not locked: removed by the next save)
//   NAME.tmp-old     only where the file system cannot exchange two names in one step: the old folder, between two
//                    renames (NAME.old would be what people call a copy of their own)
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bary {

enum class Swap {
  automatic,    // one atomic exchange (renameat2) where the file system has it
  two_renames,  // NAME -> NAME.tmp-old, new -> NAME; for file systems without the exchange, and to test that path
};

class StagedFolder {
 public:
  // Makes the empty folder beside `target` (links followed, parents created) and clears what killed processes left.
  // `owned` are the file names this program writes; when a folder is thrown away only those are deleted, and anything
  // else somebody put inside moves into the folder that takes its place.
  StagedFolder(const std::filesystem::path& target, std::vector<std::string> owned);
  ~StagedFolder();  // without commit(): removes the staged folder
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return staged_; }  // write the files here, each synced to disk
  void commit(Swap swap = Swap::automatic);                      // throws ErrorKind::system; the old folder then stays

 private:
  void clear_leftovers();
  void restore_old();
  void swap_in(Swap swap);

  std::filesystem::path target_, staged_;
  std::vector<std::string> owned_;
  int lock_ = -1;
  bool committed_ = false;
};

// Where to read: `target`, or NAME.tmp-old where a process was killed between its two renames; nothing where neither
// exists.
std::optional<std::filesystem::path> settled_folder(const std::filesystem::path& target);

}  // namespace bary
