// SPDX-License-Identifier: Apache-2.0
// What `bary train` was asked for: a preset, then a TOML file, then flags; a resumed run begins with its own record.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bary/train/config.h"

namespace bary {

struct TrainRequest {
  ModelConfig model;
  TrainConfig train;
  std::string config_file, preset;
  bool overwrite = false, json = false;

  Options options();        // describes this very object
  nlohmann::json record();  // run.json: every key, versions, machine
};

// How a checkpoint was trained, by the record of its run; none where that is not beside it.
std::optional<TrainConfig> recorded_training(const std::filesystem::path& checkpoint);

// Reads arguments, config file and, with init_from=resume, the run's record; `changes` receives a line for every key
// that the command line changed against that record.
TrainRequest parse_train_request(std::span<const std::string> args, std::vector<std::string>& changes);

}  // namespace bary
