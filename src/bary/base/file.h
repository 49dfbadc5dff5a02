// SPDX-License-Identifier: Apache-2.0
// Files: whole reads, read-only maps, and writes that are either complete or did not happen.
// Every error names the path, what the system said and one next step. In reading a path that is not what it should be
// (not there, a folder) is ErrorKind::input, and whatever else the system refuses (no permission, broken disk) is
// ErrorKind::system. Writing a file throws ErrorKind::system whatever is refused; whether a folder can be written to is
// asked beforehand, and that is ErrorKind::input (ensure_folder).
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace bary {

// The bytes as they are. Pipes, devices and /proc work too: it reads to the end and does not trust the stated size.
std::string read_file(const std::filesystem::path& path);
std::string read_descriptor(int descriptor, std::string_view name);  // to the end; `name` is for the message
std::string read_standard_input();

// Write, fsync, rename, fsync the folder. Whatever fails, `path` holds its old bytes or all of the new ones, and no
// temporary file stays behind. Throws ErrorKind::system.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

// The same promise for writing piece by piece: nothing is at `path` before commit(); without it the destructor
// discards. The temporary file `.NAME.PID.N.tmp` stands in the same folder and is locked while it is written, so the
// next writer of the same path can tell what a killed process left and removes it. A symbolic link is followed; an
// existing file keeps its permissions; a device or pipe (/dev/stdout) is written to directly, since it can't be
// replaced.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  void commit();  // once; afterwards write() is an error
  int64_t bytes_written() const { return written_; }

 private:
  [[noreturn]] void failed(const char* what, int error_number);
  void open_temporary();
  void discard() noexcept;

  std::filesystem::path path_;       // as the caller named it, for messages
  std::filesystem::path target_;     // links followed
  std::filesystem::path temporary_;  // empty when writing directly
  int descriptor_ = -1;
  int64_t written_ = 0;
};

// A file seen as memory, read-only, sizes in 64 bits; an empty file is an empty span. The file must not shrink while it
// is mapped (the system would stop the process on the missing page); bary's own writers replace files, never shrink
// them.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), static_cast<size_t>(size_)}; }
  int64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
  std::filesystem::path path_;
};

// Creates the folder and its parents if need be. Refused (ErrorKind::input) when something else has the name, a parent
// can't be entered, or the folder can't be written to: a run asks this before it starts.
void ensure_folder(const std::filesystem::path& path);

// A folder kept for one process while this lives: another that asks gets the input Error that says so. Where the file
// system knows no locks, nobody is refused.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// $XDG_CACHE_HOME/bary, else ~/.cache/bary; empty when neither variable is set. Not created.
std::filesystem::path user_cache_folder();

}  // namespace bary
