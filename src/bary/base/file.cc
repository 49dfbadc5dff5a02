// SPDX-License-Identifier: Apache-2.0
#include "bary/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bary/base/error.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr size_t kReadStep = size_t{1} << 20;
constexpr size_t kWriteStep = size_t{1} << 30;  // one write() moves at most 2 GiB

std::string system_says(int error_number) { return std::generic_category().message(error_number); }

bool is_about_the_path(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return true;
    default:
      return false;
  }
}

const char* reading_advice(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return "check the spelling and the current folder";
    case EISDIR:
      return "name a file inside it";
    case EACCES:
    case EPERM:
      return "give this user the right to read it (chmod u+r)";
    case ENOMEM:
      return "close other programs or use a smaller file";
    default:
      return "check the disk and try again";
  }
}

const char* writing_advice(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "create the folder first";
    case ENOTDIR:
      return "a part of the path is not a folder; choose another path";
    case EISDIR:
      return "that is a folder; name a file inside it";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder you may write to";
    case ENOSPC:
    case EDQUOT:
      return "free some space and run it again";
    case EFBIG:
      return "raise the file size limit (ulimit -f) or choose another disk";
    default:
      return "check the disk and try again";
  }
}

[[noreturn]] void cannot_read(const std::string& name, int error_number) {
  fail(is_about_the_path(error_number) ? ErrorKind::input : ErrorKind::system, "cannot read {}: {}; {}", name,
       system_says(error_number), reading_advice(error_number));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

std::string read_to_end(int descriptor, const std::string& name, int64_t expected) {
  std::string bytes;
  try {
    // One byte past the expected size, so that the end is seen without growing the buffer again.
    bytes.resize(expected > 0 ? static_cast<size_t>(expected) + 1 : kReadStep);
    size_t used = 0;
    for (;;) {
      if (used == bytes.size()) bytes.resize(bytes.size() + std::max(kReadStep, bytes.size() / 2));
      const ssize_t got = ::read(descriptor, bytes.data() + used, std::min(bytes.size() - used, kWriteStep));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cannot_read(name, errno);
      if (got == 0) break;
      used += static_cast<size_t>(got);
    }
    bytes.resize(used);
    return bytes;
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::system, "cannot read {}: it does not fit in memory; split it or use a machine with more", name);
  } catch (const std::length_error&) {
    fail(ErrorKind::system, "cannot read {}: it does not fit in memory; split it or use a machine with more", name);
  }
}

// What a killed writer of the same target left: temporary files that nobody holds the lock of.
void remove_stale_temporaries(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(".tmp")) continue;
    if (name.find_first_not_of("0123456789.", prefix.size()) != name.size() - 3) continue;
    const Descriptor file(::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
  }
}

}  // namespace

std::string read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) cannot_read(path.string(), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) cannot_read(path.string(), errno);
  if (S_ISDIR(status.st_mode)) cannot_read(path.string(), EISDIR);
  return read_to_end(file.get(), path.string(), S_ISREG(status.st_mode) ? status.st_size : 0);
}

std::string read_descriptor(int descriptor, std::string_view name) {
  return read_to_end(descriptor, std::string(name), 0);
}

std::string read_standard_input() { return read_descriptor(STDIN_FILENO, "standard input"); }

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) failed("write", EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) failed("open", errno);
    return;
  }
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    target_ = fs::weakly_canonical(path, error);
    if (error) failed("follow", error.value());
  }
  open_temporary();
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && ::fchmod(descriptor_, old.st_mode & 07777) != 0) failed("create", errno);
}

void AtomicFile::open_temporary() {
  fs::path folder = target_.parent_path();
  if (folder.empty()) folder = ".";
  const std::string prefix = fmt::format(".{}.", target_.filename().string());
  remove_stale_temporaries(folder, prefix);
  for (int attempt = 0;; ++attempt) {
    temporary_ = folder / fmt::format("{}{}.{}.tmp", prefix, ::getpid(), attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      const int error_number = errno;
      if (error_number == EEXIST && attempt < 10000) continue;
      temporary_.clear();
      failed("create", error_number);
    }
    // Between open and lock another writer may have taken the file for a left-over: then it has no name any more.
    struct stat status {};
    ::flock(descriptor_, LOCK_EX | LOCK_NB);
    if (::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_) {}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  // The name goes before the lock does, so no other writer meets an unlocked file of ours.
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
  temporary_.clear();
  descriptor_ = -1;
}

void AtomicFile::failed(const char* what, int error_number) {
  discard();
  fail(ErrorKind::system, "cannot {} {}: {}; {}", what, path_.string(), system_says(error_number),
       writing_advice(error_number));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view bytes) {
  BARY_CHECK(descriptor_ >= 0, "write to {}: the file is already closed; open it again to write more", path_.string());
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kWriteStep));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) failed("write", errno);
    bytes.remove_prefix(static_cast<size_t>(wrote));
    written_ += wrote;
  }
}

void AtomicFile::commit() {
  BARY_CHECK(descriptor_ >= 0, "commit of {}: the file is already closed; commit once", path_.string());
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) failed("write", errno);
    return;
  }
  if (::fsync(descriptor_) != 0) failed("write", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) failed("replace", errno);
  temporary_.clear();
  if (::close(std::exchange(descriptor_, -1)) != 0) failed("write", errno);
  // The new name is on the disk only when the folder is.
  fs::path folder = target_.parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems have no fsync for folders, and a folder may be writable but not readable.
  if (directory.get() >= 0 && ::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    failed("flush the folder of", errno);
  }
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) cannot_read(path.string(), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) cannot_read(path.string(), errno);
  if (S_ISDIR(status.st_mode)) cannot_read(path.string(), EISDIR);
  BARY_CHECK(S_ISREG(status.st_mode), "cannot map {}: it is a pipe or device; write it to a file first", path.string());
  if (status.st_size == 0) return;
  void* memory = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) cannot_read(path.string(), errno);
  data_ = static_cast<const std::byte*>(memory);
  size_ = status.st_size;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  fail("{}: another process is writing there; wait for it or name another folder", folder.string());
}
FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ensure_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  const int error_number = error ? error.value() : ENOTDIR;
  if (!fs::is_directory(path, error)) {
    const bool exists = fs::exists(fs::symlink_status(path, error));
    if (exists) fail("cannot create the folder {}: a file has that name; choose another name", path.string());
    const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EIO;
    fail(full ? ErrorKind::system : ErrorKind::input, "cannot create the folder {}: {}; {}", path.string(),
         system_says(error_number), writing_advice(error_number));
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    const int refusal = errno;
    fail("cannot write to the folder {}: {}; {}", path.string(), system_says(refusal), writing_advice(refusal));
  }
}

fs::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // The XDG specification: a relative path there is to be ignored.
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "bary";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "bary";
  return {};
}

}  // namespace bary
