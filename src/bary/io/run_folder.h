// SPDX-License-Identifier: Apache-2.0
// A checkpoint is a folder that people's tools read:
//   model.safetensors      weights, float32                 config.json   the model
//   tokenizer.json         where the caller gives one       state.json    step, seed, best loss, ... and weights_sha256
//   optimizer.safetensors  its moments, where there are any manifest.json size and SHA-256 of all of them
// It is replaced as a whole (io/staged_folder.h) and checked as a whole before anything of it is used (io/manifest.h).
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bary/io/safetensors.h"
#include "bary/io/staged_folder.h"

namespace bary {

struct Checkpoint {
  nlohmann::json config = nlohmann::json::object();
  nlohmann::json state = nlohmann::json::object();  // weights_sha256 is added
  std::string tokenizer;                            // the bytes of tokenizer.json; empty: no such file
  std::string source_tokenizer;                     // of source_tokenizer.json, a source's own; empty: no such file
  std::vector<TensorView> weights;
  std::vector<TensorView> optimizer;  // empty: no such file
};

// Kill -9, power cut or full disk at any moment leave the checkpoint before it loadable. Throws ErrorKind::system when
// the machine refuses, an input Error when `folder` exists and is something else than a checkpoint. Returns the SHA-256
// of the weights: of the bytes of model.safetensors.
std::string save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                            Swap swap = Swap::automatic);

struct LoadedCheckpoint {
  std::filesystem::path folder;  // where it was found: NAME, or NAME.tmp-old after a kill inside a save
  nlohmann::json config, state;
  std::string tokenizer, source_tokenizer;   // empty: it has none
  SafetensorsFile weights;                   // in the file until read; read_into() compares shapes
  std::optional<SafetensorsFile> optimizer;  // where it has one and it was asked for
};

struct LoadOptions {
  bool optimizer = true;  // generation and evaluation need none of it
};

// Every listed file is there, whole and unchanged, or an input Error names the one that is not.
LoadedCheckpoint load_checkpoint(const std::filesystem::path& folder, LoadOptions options = {});

// What a checkpoint says about itself, checked like all of it; its weights are neither read nor hashed.
struct CheckpointNotes {
  std::filesystem::path folder;
  nlohmann::json config, state;
};
CheckpointNotes read_checkpoint_notes(const std::filesystem::path& folder);

bool checkpoint_exists(const std::filesystem::path& folder);  // something a load would try

// SHA-256 of these tensors as model.safetensors would hold them, in any order.
std::string weights_sha256(std::span<const TensorView> weights);

// Before a run starts: can `folder` be made, a file be written in it, and is there space for `bytes_needed` (0: not
// asked)? Nothing is left behind, so that a run refused for another reason leaves no folder. Input Error with the path,
// what is missing and what to do.
void check_writable(const std::filesystem::path& folder, int64_t bytes_needed = 0);

}  // namespace bary
