// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bary/cli/command.h"

namespace bary {

Command tokenizer_train_command();
Command tokenizer_encode_command();
Command tokenizer_decode_command();
Command tokenizer_show_command();

}  // namespace bary
