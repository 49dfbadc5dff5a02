// SPDX-License-Identifier: Apache-2.0
#include "bary/io/run_folder.h"

#include <sys/stat.h>

#include "bary/base/error.h"
#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/sha256.h"
#include "bary/io/manifest.h"

namespace bary {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kConfig = "config.json";
constexpr const char* kState = "state.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kSourceTokenizer = "source_tokenizer.json";

std::vector<std::string> file_names() {
  return {kWeights, kOptimizer, kConfig, kState, kTokenizer, kSourceTokenizer, kManifestName};
}

// Hashed on the way to the disk: what the manifest promises is what was meant, not what a bad disk gives back.
FileRecord write_tensors(const fs::path& path, std::span<const TensorView> tensors) {
  AtomicFile file(path);
  Sha256 hash;
  stream_safetensors(tensors, {}, [&](std::string_view bytes) {
    hash.update(bytes);
    file.write(bytes);
  });
  FileRecord record{file.bytes_written(), hash.hex()};
  file.commit();
  return record;
}

FileRecord write_text(const fs::path& path, std::string_view bytes) {
  write_file_atomic(path, bytes);
  return {static_cast<int64_t>(bytes.size()), sha256_hex(bytes)};
}

void refuse_to_replace_strangers(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) return;
  BARY_CHECK(fs::is_directory(folder, ignored), "{}: is a file, a checkpoint is a folder; choose another name",
             folder.string());
  bool ours = fs::exists(folder / kManifestName, ignored) || fs::is_empty(folder, ignored);
  BARY_CHECK(ours, "{}: exists and holds no checkpoint of bary; choose another name or an empty folder",
             folder.string());
}

// Which folder a name stands for, to notice that it was swapped while it was read.
std::pair<dev_t, ino_t> identity(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return {0, 0};
  return {status.st_dev, status.st_ino};
}

SafetensorsFile open_checked(const Manifest& manifest, const fs::path& path) {
  MappedFile file(path);
  check_file(manifest, path, file.text());
  return SafetensorsFile(std::move(file));
}

Manifest checked_manifest(const fs::path& folder) {
  Manifest manifest = read_manifest(folder);
  for (const char* name : {kWeights, kConfig, kState}) {
    BARY_CHECK(manifest.count(name), "{}: {} does not list {}; use another checkpoint", folder.string(), kManifestName,
               name);
  }
  return manifest;
}

std::string checked_text(const Manifest& manifest, const fs::path& path) {
  MappedFile file(path);  // a wrong size is seen before anything is allocated
  check_file(manifest, path, file.text());
  return std::string(file.text());
}

CheckpointNotes notes_from(const fs::path& folder) {
  const Manifest manifest = checked_manifest(folder);
  const std::string config = checked_text(manifest, folder / kConfig), state = checked_text(manifest, folder / kState);
  return {folder, parse_json(config, (folder / kConfig).string()), parse_json(state, (folder / kState).string())};
}

LoadedCheckpoint load_from(const fs::path& folder, LoadOptions options) {
  const Manifest manifest = checked_manifest(folder);
  auto text = [&](const char* name) { return checked_text(manifest, folder / name); };
  // All files are checked before the first is used.
  std::string config = text(kConfig), state = text(kState), tokenizer, source;
  if (manifest.count(kTokenizer)) tokenizer = text(kTokenizer);
  if (manifest.count(kSourceTokenizer)) source = text(kSourceTokenizer);
  std::optional<SafetensorsFile> optimizer;
  if (options.optimizer && manifest.count(kOptimizer)) optimizer.emplace(open_checked(manifest, folder / kOptimizer));
  LoadedCheckpoint out{folder,
                       {},
                       {},
                       std::move(tokenizer),
                       std::move(source),
                       open_checked(manifest, folder / kWeights),
                       std::move(optimizer)};
  out.config = parse_json(config, (folder / kConfig).string());
  out.state = parse_json(state, (folder / kState).string());
  return out;
}

// read(place), where a run that saves meanwhile may swap the folder away under us: then the new one is read from the
// start.
template <class Read>
auto read_settled(const fs::path& folder, const Read& read) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const auto place = settled_folder(folder);
    BARY_CHECK(place, "{}: no such folder; name a checkpoint, such as runs/NAME/best", folder.string());
    const auto before = identity(*place);
    try {
      return read(*place);
    } catch (const Error&) {
      if (attempt == kAttempts || identity(*place) == before) throw;
    }
  }
}

}  // namespace

std::string save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, Swap swap) {
  refuse_to_replace_strangers(folder);
  bool had_one = checkpoint_exists(folder);
  try {
    StagedFolder staged(folder, file_names());
    Manifest manifest;
    manifest[kWeights] = write_tensors(staged.path() / kWeights, checkpoint.weights);
    if (!checkpoint.optimizer.empty()) {
      manifest[kOptimizer] = write_tensors(staged.path() / kOptimizer, checkpoint.optimizer);
    }
    nlohmann::json state = checkpoint.state;
    state["weights_sha256"] = manifest[kWeights].sha256;
    manifest[kState] = write_text(staged.path() / kState, dump_json(state) + "\n");
    manifest[kConfig] = write_text(staged.path() / kConfig, dump_json(checkpoint.config) + "\n");
    if (!checkpoint.tokenizer.empty())
      manifest[kTokenizer] = write_text(staged.path() / kTokenizer, checkpoint.tokenizer);
    if (!checkpoint.source_tokenizer.empty())
      manifest[kSourceTokenizer] = write_text(staged.path() / kSourceTokenizer, checkpoint.source_tokenizer);
    write_file_atomic(staged.path() / kManifestName, manifest_text(manifest));
    staged.commit(swap);
    return manifest[kWeights].sha256;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::system || !had_one) throw;
    throw Error(error.kind(),
                fmt::format("{} (the checkpoint saved before in {} still loads)", error.what(), folder.string()));
  }
}

LoadedCheckpoint load_checkpoint(const fs::path& folder, LoadOptions options) {
  return read_settled(folder, [&](const fs::path& place) { return load_from(place, options); });
}

CheckpointNotes read_checkpoint_notes(const fs::path& folder) { return read_settled(folder, notes_from); }

bool checkpoint_exists(const fs::path& folder) {
  auto place = settled_folder(folder);
  std::error_code ignored;
  return place && fs::exists(*place / kManifestName, ignored);
}

std::string weights_sha256(std::span<const TensorView> weights) {
  Sha256 hash;
  stream_safetensors(weights, {}, [&](std::string_view bytes) { hash.update(bytes); });
  return hash.hex();
}

namespace {

// Folders that a look made, taken away again with it: those that are still empty.
class MadeFolders {
 public:
  explicit MadeFolders(fs::path folder) {
    std::error_code ignored;
    for (; !folder.empty() && !fs::exists(folder, ignored); folder = folder.parent_path()) made_.push_back(folder);
  }
  ~MadeFolders() {
    std::error_code ignored;
    for (const fs::path& folder : made_) fs::remove(folder, ignored);
  }
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

 private:
  std::vector<fs::path> made_;  // the innermost first
};

}  // namespace

void check_writable(const fs::path& folder, int64_t bytes_needed) {
  const MadeFolders made(folder);
  ensure_folder(folder);
  try {
    AtomicFile probe(folder / ".bary-can-write-here");
    probe.write("x");  // never committed: discarded at the end of the scope
  } catch (const Error& error) {
    fail("{}: nothing can be written there ({}); choose another folder", folder.string(), error.what());
  }
  if (bytes_needed == 0) return;
  std::error_code error;
  auto space = fs::space(folder, error);
  BARY_CHECK(error || space.available >= static_cast<uintmax_t>(bytes_needed),
             "{}: has {:.1f} MB free, the checkpoints need {:.1f} MB; free some space or choose another --out_dir",
             folder.string(), static_cast<double>(space.available) / 1e6, static_cast<double>(bytes_needed) / 1e6);
}

}  // namespace bary
