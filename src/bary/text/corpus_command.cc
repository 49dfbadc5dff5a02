// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "bary/base/clock.h"
#include "bary/base/error.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostErrors = 64 << 10;

std::string system_says(int error_number) { return std::generic_category().message(error_number); }

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      fail(ErrorKind::system, "cannot make a pipe: {}; close other programs", system_says(errno));
    }
    read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() { close_read(), close_write(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() { close_one(read_end); }
  void close_write() { close_one(write_end); }

 private:
  static void close_one(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
  }
};

// A child that is waited for in any case, so that no exception leaves it behind.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ > 0) ::kill(id_, SIGKILL), wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_;
};

pid_t start(const std::vector<std::string>& arguments, const fs::path& folder, const Pipe& out, const Pipe& err) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);
  if (!folder.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t id = -1;
  const int error_number = ::posix_spawnp(&id, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error_number != 0) {
    fail(ErrorKind::system, "cannot run {}: {}; install it or put it on the PATH", arguments[0],
         system_says(error_number));
  }
  return id;
}

// One read from a pipe; false at its end.
bool read_some(int end, std::string& into) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::read(end, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  into.append(buffer.data(), static_cast<size_t>(got));
  return got > 0;
}

void collect(Pipe& out, Pipe& err, CommandResult& result, const std::string& name, const CommandOptions& options) {
  const Stopwatch watch;
  while (out.read_end >= 0 || err.read_end >= 0) {
    const double left = options.seconds - watch.seconds();
    if (left <= 0)
      fail(ErrorKind::system, "{} ran for {} seconds and was stopped; try again later", name, options.seconds);
    std::array<pollfd, 2> ends{pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
    if (::poll(ends.data(), ends.size(), static_cast<int>(std::min(left * 1000 + 1, 1e6))) <= 0) continue;
    if (ends[0].revents != 0 && !read_some(out.read_end, result.output)) out.close_read();
    if (ends[1].revents != 0 && !read_some(err.read_end, result.errors)) err.close_read();
    if (std::ssize(result.output) > options.most_output) {
      fail(ErrorKind::system, "{} wrote more than {} bytes and was stopped; that is not what it should give", name,
           options.most_output);
    }
    if (result.errors.size() > 2 * kMostErrors) result.errors.erase(0, result.errors.size() - kMostErrors);
  }
  if (result.errors.size() > kMostErrors) result.errors.erase(0, result.errors.size() - kMostErrors);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  BARY_CHECK(!arguments.empty(), "run_command: there are no arguments; the first one is the program");
  Pipe out, err;
  Child child(start(arguments, options.folder, out, err));
  out.close_write();
  err.close_write();
  CommandResult result;
  collect(out, err, result, arguments[0], options);
  result.exit_code = child.wait();
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string pattern = (base / "bary-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    fail(ErrorKind::system, "cannot make a temporary folder in {}: {}; set TMPDIR to one you may write to",
         base.string(), system_says(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace bary
