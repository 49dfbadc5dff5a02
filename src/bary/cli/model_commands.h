// SPDX-License-Identifier: Apache-2.0
// The commands that train and run models.
#pragma once
#include "bary/cli/command.h"

namespace bary {

Command train_command();
Command eval_command();
Command generate_command();
Command fill_command();
Command embed_command();
Command translate_command();
Command params_command();

}  // namespace bary
