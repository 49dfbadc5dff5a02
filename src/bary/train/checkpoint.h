// SPDX-License-Identifier: Apache-2.0
// A model with its tokenizer, optimiser and place in a run, to and from a folder (io/run_folder.h).
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bary/model/decoder.h"
#include "bary/text/tokenizer.h"
#include "bary/train/adamw.h"

namespace bary {

// Returns the SHA-256 of the weights. `optimizer` may be null: such a checkpoint can be run but not resumed.
std::string save_model(const std::filesystem::path& folder, const Decoder& model,
                       const std::optional<Tokenizer>& tokenizer, AdamW* optimizer, const nlohmann::json& state);
std::string weights_hash(const Decoder& model);

struct LoadedModel {
  std::unique_ptr<Decoder> model;
  std::optional<Tokenizer> tokenizer;
  nlohmann::json state;
  std::filesystem::path folder;
};
// `folder` may be a checkpoint or a run's out_dir (then its best, else its last).
LoadedModel load_model(const std::filesystem::path& folder, const Reading& reading = {});
// Weights, moments and state of a run's last checkpoint, into a model of the same configuration.
nlohmann::json resume_into(const std::filesystem::path& folder, Decoder& model, AdamW& optimizer);
std::filesystem::path find_checkpoint(const std::filesystem::path& folder, bool best_first);

}  // namespace bary
