// SPDX-License-Identifier: Apache-2.0
// The experiments, one file each: what is run, what is claimed, what came out.
#pragma once
#include "bary/lab/experiment.h"

namespace bary::lab {

Experiment average();
Experiment embedding();
Experiment mixing();
Experiment ladder();
Experiment scores();
Experiment scale();
Experiment norms();
Experiment dropout();
Experiment positions();
Experiment cost();
Experiment parameters();
Experiment encoder_decoder();
Experiment encoder();
Experiment recurrence();
Experiment two_nouns();
Experiment induction();
Experiment annotated();
Experiment parity();
Experiment leak();
Experiment lengths();

}  // namespace bary::lab
