// SPDX-License-Identifier: Apache-2.0
// A model with its tokenizer, optimiser and place in a run, to and from a folder (io/run_folder.h).
#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bary/model/language_model.h"
#include "bary/model/seq2seq.h"
#include "bary/text/tokenizer.h"
#include "bary/train/adamw.h"

namespace bary {

struct Tokenizers {
  std::optional<Tokenizer> text, source;  // source: of a model of pairs whose two sides have vocabularies of their own
};
// Returns the SHA-256 of the weights. `optimizer` may be null: such a checkpoint can be run but not resumed.
std::string save_model(const std::filesystem::path& folder, const Model& model, const Tokenizers& tokenizers,
                       AdamW* optimizer, const nlohmann::json& state);
std::string weights_hash(const Model& model);

struct LoadedModel {
  std::unique_ptr<LanguageModel> model;
  std::optional<Tokenizer> tokenizer;
  nlohmann::json state;
  std::filesystem::path folder;
};
// `folder` may be a checkpoint or a run's out_dir (then its best, else its last).
LoadedModel load_model(const std::filesystem::path& folder, const Reading& reading = {});
// The same of a model of pairs. Each refuses the other's checkpoints, naming the arrangement.
struct LoadedSeq2Seq {
  std::unique_ptr<Seq2Seq> model;
  Tokenizer source, target;
  nlohmann::json state;
  std::filesystem::path folder;
};
LoadedSeq2Seq load_seq2seq(const std::filesystem::path& folder);
ModelConfig checkpoint_config(const std::filesystem::path& folder);  // what kind of model is it?

// Weights, moments and state of a run's last checkpoint, into a model of the same configuration.
nlohmann::json resume_into(const std::filesystem::path& folder, Model& model, AdamW& optimizer);
std::filesystem::path find_checkpoint(const std::filesystem::path& folder, bool best_first);

}  // namespace bary
