// SPDX-License-Identifier: Apache-2.0
#include "bary/io/manifest.h"

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/quote.h"
#include "bary/base/sha256.h"

namespace bary {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kLongestManifest = 1 << 20;

Json to_json(const Manifest& manifest) {
  Json files = Json::object();
  for (const auto& [name, record] : manifest) files[name] = {{"size", record.size}, {"sha256", record.sha256}};
  return {{"version", kVersion}, {"files", files}, {"sha256", sha256_hex(dump_json(files, -1))}};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) { return dump_json(to_json(manifest)) + "\n"; }

Manifest read_manifest(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / kManifestName;
  std::string what = path.string();
  std::error_code unreadable;
  BARY_CHECK(std::filesystem::exists(path, unreadable),
             "{}: missing, so {} is no complete checkpoint of bary; name one that is", what, folder.string());
  MappedFile file(path);
  BARY_CHECK(file.size() <= kLongestManifest, "{}: has {} bytes, at most {} are expected; it is damaged", what,
             file.size(), kLongestManifest);
  Json json = parse_json(file.text(), what, 4);
  int64_t version = json_integer(json, "version", what);
  BARY_CHECK(version == kVersion, "{}: version {}, this bary reads version {}; use the bary that wrote it", what,
             version, kVersion);
  Manifest manifest;
  const Json& files = json_member(json, "files", what);
  BARY_CHECK(files.is_object(), "{}: files is no object; it is damaged", what);
  for (const auto& [name, record] : files.items()) {
    bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
    BARY_CHECK(plain, "{}: lists {}, which is no file of this folder; it is damaged", what, quote(name));
    manifest[name] = {json_integer(record, "size", what), json_string(record, "sha256", what)};
  }
  // Byte for byte what would be written: a flipped bit anywhere, in a space too, is seen.
  BARY_CHECK(manifest_text(manifest) == file.text(),
             "{}: damaged, its own check does not match; use another checkpoint", what);
  return manifest;
}

void check_file(const Manifest& manifest, const std::filesystem::path& file, std::string_view bytes) {
  auto found = manifest.find(file.filename().string());
  BARY_CHECK(found != manifest.end(), "{}: not listed in {}; it is not part of this checkpoint", file.string(),
             kManifestName);
  const FileRecord& record = found->second;
  BARY_CHECK(static_cast<int64_t>(bytes.size()) == record.size,
             "{}: damaged: it has {} bytes, {} says {}; restore it or use another checkpoint", file.string(),
             bytes.size(), kManifestName, record.size);
  BARY_CHECK(sha256_hex(bytes) == record.sha256,
             "{}: damaged: its SHA-256 is not the one in {}; restore it or use another checkpoint", file.string(),
             kManifestName);
}

}  // namespace bary
