// SPDX-License-Identifier: Apache-2.0
#include "bary/io/staged_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "bary/base/error.h"
#include "bary/base/file.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr const char* kStagedMark = ".tmp-";

std::string system_says(int error_number) { return std::generic_category().message(error_number); }

[[noreturn]] void cannot(const char* what, const fs::path& path, int error_number) {
  fail(ErrorKind::system, "cannot {} {}: {}; check the disk and its permissions", what, path.string(),
       system_says(error_number));
}

// Without links and a trailing slash, so that the names beside it lie in the same real folder.
fs::path resolved(const fs::path& target) {
  std::error_code ignored;
  fs::path whole = fs::absolute(target, ignored);
  if (ignored) whole = target;  // the working folder is gone: what follows says what cannot be written
  fs::path path = fs::weakly_canonical(whole, ignored);
  if (ignored) path = whole.lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

fs::path old_name(const fs::path& target) { return target.string() + kStagedMark + "old"; }

// Makes a folder's own entries last through a power cut; file systems that cannot are left alone.
void sync_folder(const fs::path& path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  int result = ::fsync(descriptor);
  int error_number = errno;
  ::close(descriptor);
  if (result != 0 && error_number != EINVAL && error_number != ENOTSUP) cannot("sync", path, error_number);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    out.push_back(it->path());
  return out;
}

// Removes `folder`, never a stranger's file: what is not ours moves to `heir`, and stays where the name is taken there.
void retire(const fs::path& folder, const fs::path& heir, const std::vector<std::string>& owned) {
  if (fs::is_symlink(folder)) return;
  for (const fs::path& entry : entries_of(folder)) {
    std::string name = entry.filename().string();
    bool unfinished = name.starts_with(".") && name.ends_with(".tmp");  // of an atomic file write
    std::error_code ignored;
    if (unfinished || std::find(owned.begin(), owned.end(), name) != owned.end())
      fs::remove(entry, ignored);
    else if (!fs::exists(fs::symlink_status(heir / name, ignored)))
      fs::rename(entry, heir / name, ignored);
  }
  ::rmdir(folder.c_str());
}

// The lock of a folder that no living process builds, to be closed by the caller; -1 where it cannot be had.
int lock_abandoned(const fs::path& staged) {
  int descriptor = ::open(staged.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& target, std::vector<std::string> owned)
    : target_(resolved(target)), owned_(std::move(owned)) {
  ensure_folder(target_.parent_path());
  clear_leftovers();
  for (int attempt = 0; lock_ < 0; ++attempt) {
    staged_ = fmt::format("{}{}{}-{}", target_.string(), kStagedMark, ::getpid(), attempt);
    if (::mkdir(staged_.c_str(), 0777) != 0) {
      int error_number = errno;
      if (error_number == EEXIST && attempt < 10000) continue;
      cannot("create a folder beside", target_, error_number);
    }
    int folder = ::open(staged_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
      int error_number = errno;
      if (error_number == ENOENT) continue;  // another save took it for a leftover before it was locked
      ::rmdir(staged_.c_str());
      cannot("lock", staged_, error_number);
    }
    const bool taken = ::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // or is taking it now
    struct stat status {};
    if (!taken && ::fstat(folder, &status) == 0 && status.st_nlink > 0)
      lock_ = folder;
    else
      ::close(folder);
  }
}

StagedFolder::~StagedFolder() {
  if (!committed_ && !staged_.empty()) {
    std::error_code ignored;
    fs::remove_all(staged_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

void StagedFolder::clear_leftovers() {
  restore_old();
  std::string prefix = target_.filename().string() + kStagedMark;
  for (const fs::path& entry : entries_of(target_.parent_path())) {
    std::string name = entry.filename().string();
    bool staged = name.starts_with(prefix) && name.find_first_not_of("-0123456789", prefix.size()) == std::string::npos;
    if (!staged) continue;
    const int lock = lock_abandoned(entry);
    if (lock < 0) continue;
    retire(entry, target_, owned_);  // under its lock, so that nobody begins to build there
    ::close(lock);
  }
}

// After a kill between the two renames the old folder gets its name back; after one behind them it is no longer needed.
void StagedFolder::restore_old() {
  fs::path old = old_name(target_);
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(old, ignored))) return;
  if (!fs::exists(target_, ignored))
    fs::rename(old, target_, ignored);
  else
    retire(old, target_, owned_);
}

void StagedFolder::swap_in(Swap swap) {
  if (swap == Swap::automatic) {
    if (::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0) {
      committed_ = true;
      sync_folder(target_.parent_path());
      retire(staged_, target_, owned_);  // this name holds the old folder now
      return;
    }
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) cannot("replace", target_, errno);
  }
  fs::path old = old_name(target_);
  if (::rename(target_.c_str(), old.c_str()) != 0) cannot("set aside", target_, errno);
  if (::rename(staged_.c_str(), target_.c_str()) != 0) {
    int error_number = errno;
    ::rename(old.c_str(), target_.c_str());
    cannot("replace", target_, error_number);
  }
  committed_ = true;
  sync_folder(target_.parent_path());
  retire(old, target_, owned_);
}

void StagedFolder::commit(Swap swap) {
  BARY_CHECK(!committed_, "staged folder: {} was committed already; make a new one", target_.string());
  sync_folder(staged_);
  std::error_code ignored;
  if (!fs::exists(target_, ignored)) {  // a first save has nothing to swap with
    if (::rename(staged_.c_str(), target_.c_str()) != 0) cannot("create", target_, errno);
    committed_ = true;
    sync_folder(target_.parent_path());
    return;
  }
  swap_in(swap);
}

std::optional<fs::path> settled_folder(const fs::path& target) {
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) return target;
  fs::path old = old_name(resolved(target));
  if (!fs::exists(target, ignored) && fs::is_directory(old, ignored)) return old;
  return std::nullopt;
}

}  // namespace bary
