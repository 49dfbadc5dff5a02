// SPDX-License-Identifier: Apache-2.0
// What every arrangement is to the floors above: a configuration and the parameters made from it. Files, optimisers and
// hashes need no more.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bary/model/config.h"
#include "bary/tensor/parameters.h"

namespace bary {

class Model {
 public:
  const ModelConfig& config() const { return config_; }
  Parameters& parameters() const { return *parameters_; }

 protected:
  // Refuses what cannot be built. Every parameter's first value is keyed by (seed, its name).
  Model(const ModelConfig& config, uint64_t seed);
  ~Model() = default;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;
  Scope root() const;  // where parameters are made

  ModelConfig config_;

 private:
  std::unique_ptr<Parameters> parameters_;
};

// Taps of the residual stream in the order of a pass: embeddings, then before, inside and after every block.
std::vector<std::string> residual_taps(const ModelConfig& c);

// How a model is changed for another context or vocabulary is the caller's choice; this copies the values of all
// parameters of the same name and shape and names the rest.
std::vector<std::string> copy_parameters(const Parameters& from, Parameters& to);

}  // namespace bary
