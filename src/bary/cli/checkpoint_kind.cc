// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/checkpoint_kind.h"

#include "bary/io/run_folder.h"
#include "bary/train/checkpoint.h"

namespace bary {

CheckpointKind kind_of(const std::string& folder) {
  const CheckpointNotes notes = read_checkpoint_notes(find_checkpoint(folder, true));
  const ModelConfig config = model_config_from_json(notes.config, (notes.folder / "config.json").string());
  return {config, config.has_source() || notes.state.contains("task")};
}

}  // namespace bary
