// SPDX-License-Identifier: Apache-2.0
// manifest.json: size and SHA-256 of every file of a folder, and of this list itself, so that a file cut off at any
// byte or with one flipped bit is found and named before anything is loaded.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace bary {

inline constexpr const char* kManifestName = "manifest.json";

struct FileRecord {
  int64_t size = 0;
  std::string sha256;
};

using Manifest = std::map<std::string, FileRecord>;

std::string manifest_text(const Manifest& manifest);

// From folder/manifest.json. Input Error where it is missing, damaged or names anything but plain files of the folder.
Manifest read_manifest(const std::filesystem::path& folder);

// Throws the input Error that names `file` where its bytes are not what the manifest of `folder` says.
void check_file(const Manifest& manifest, const std::filesystem::path& file, std::string_view bytes);

}  // namespace bary
