// SPDX-License-Identifier: Apache-2.0
// The commands of the library's floors, in the order of help.
#include "bary/cli/command.h"
#include "bary/cli/data.h"
#include "bary/cli/lab_commands.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/tokenizer_commands.h"

namespace bary {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      tokenizer_train_command(),
      tokenizer_encode_command(),
      tokenizer_decode_command(),
      tokenizer_show_command(),
      data_command(),
      train_command(),
      eval_command(),
      generate_command(),
      fill_command(),
      embed_command(),
      translate_command(),
      params_command(),
      lab_list_command(),
      lab_run_command(),
      lab_report_command(),
  };
  return all;
}

}  // namespace bary
