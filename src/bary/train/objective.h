// SPDX-License-Identifier: Apache-2.0
// What a run minimises: a model together with what it learns from. The loop knows neither texts nor arrangements; it
// asks for the gradient of an update, for the loss on a part, and for a folder to be written.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bary/train/adamw.h"
#include "bary/train/evaluate.h"
#include "bary/train/gradient.h"

namespace bary {

enum class Part { train, held_out };

class Objective {
 public:
  virtual ~Objective() = default;

  virtual Model& model() const = 0;
  // The sum of the loss over the sequences of update `it`, its gradient in `into`. `pass` names seed and step.
  virtual GradientSum::Result gradient(int64_t it, const Pass& pass, GradientSum& into) const = 0;
  virtual bool has(Part part) const = 0;
  // `count` fixed sequences of a part, named by `seed`; 0: all windows of a part of a text; of pairs all where they
  // are held out and a list of at most 10,000, else 1,000 draws (PairData::fixed).
  virtual Evaluation evaluate(Part part, int64_t count, uint64_t seed) const = 0;
  virtual double flops_per_update() const = 0;

  virtual void check_sound(uint64_t) const {}  // throws when the model could see what it is to tell
  virtual void look_again(int64_t) const {}    // the forward pass of an update once more, for a probe
  // Writes a checkpoint and returns the hash of its weights; without an optimiser it cannot be resumed.
  virtual std::string save(const std::filesystem::path& folder, AdamW* optimizer,
                           const nlohmann::json& state) const = 0;
};

}  // namespace bary
