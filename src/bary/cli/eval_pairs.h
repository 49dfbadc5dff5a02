// SPDX-License-Identifier: Apache-2.0
// How well a model answers sources it has not seen, beside what needs no model.
#pragma once
#include <string>

#include "bary/base/options.h"
#include "bary/cli/checkpoint_kind.h"
#include "bary/cli/command.h"
#include "bary/generate/beam.h"

namespace bary {

struct PairEvalRequest {
  std::string task, data, data_target;  // empty: those of the run
  int64_t min_length = 0, max_length = 0, count = 1000;
  BeamOptions beam;

  void describe(Options& options);
};

int eval_pairs(const std::string& folder, const CheckpointKind& kind, const PairEvalRequest& request, bool json,
               Io& io);

}  // namespace bary
