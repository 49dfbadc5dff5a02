// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/checkpoint_kind.h"

#include "bary/io/run_folder.h"

namespace bary {

CheckpointKind kind_of(const std::string& folder) {
  const CheckpointNotes notes = read_checkpoint_notes(find_checkpoint(folder, true));
  const ModelConfig config = model_config_from_json(notes.config, (notes.folder / "config.json").string());
  return {config, config.has_source() || notes.state.contains("task")};
}

LoadedModel load_text_model(const std::string& folder, const Reading& reading) {
  LoadedModel m = load_model(folder, reading);
  BARY_CHECK(!m.state.contains("task"),
             "{}: this is a model of pairs in one line (arch={}), and a model of one text is asked for; let it answer "
             "sources with `bary translate {}`",
             folder, arch_name(m.model->config()), folder);
  return m;
}

}  // namespace bary
