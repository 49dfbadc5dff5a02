// SPDX-License-Identifier: Apache-2.0
// What kind of model a checkpoint holds, so that a command can say what it cannot do with it before the weights are
// read.
#pragma once
#include <string>

#include "bary/model/config.h"
#include "bary/train/checkpoint.h"

namespace bary {

struct CheckpointKind {
  ModelConfig config;
  bool of_pairs = false;  // it answers sources, from two sides or in one line
  bool one_stack() const { return of_pairs && !config.has_source(); }
};

CheckpointKind kind_of(const std::string& folder);  // of a checkpoint, or of a run

// A model of one text; one that answers sources is refused, with the command that asks it.
LoadedModel load_text_model(const std::string& folder, const Reading& reading = {});

}  // namespace bary
