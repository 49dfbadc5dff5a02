// SPDX-License-Identifier: Apache-2.0
#include "bary/train/checkpoint.h"

#include <array>
#include <fstream>
#include <utility>

#include "bary/base/quote.h"
#include "bary/io/run_folder.h"
#include "bary/model/count.h"

namespace bary {
namespace {

FileShape file_shape(const Shape& s) {
  FileShape f;
  for (int i = 0; i < s.rank(); ++i) f.push_back(s[i]);
  return f;
}

std::vector<TensorView> views(const Parameters& layout, const float* values, const std::string& prefix) {
  std::vector<TensorView> v;
  for (const Parameter& p : layout.list())
    v.push_back({prefix + p.name, file_shape(p.shape), {values + p.offset, static_cast<size_t>(p.shape.volume())}});
  return v;
}

void read_all(const SafetensorsFile& file, const Parameters& layout, float* values, const std::string& prefix) {
  for (const Parameter& p : layout.list())
    file.read_into(prefix + p.name, file_shape(p.shape), {values + p.offset, static_cast<size_t>(p.shape.volume())});
}

// Every tensor of the layout is there with its shape, so that reading cannot stop half way.
void check_all(const SafetensorsFile& file, const Parameters& layout, const std::string& prefix,
               const std::filesystem::path& path) {
  for (const Parameter& p : layout.list()) {
    const auto& found = file.info(prefix + p.name);
    BARY_CHECK(found.shape == file_shape(p.shape), "{}: tensor {} is {}, the model's {}; do the two belong together?",
               path.string(), prefix + p.name, shape_text(found.shape), shape_text(file_shape(p.shape)));
  }
}

void check_no_more(const SafetensorsFile& file, const Parameters& layout, const std::filesystem::path& folder) {
  for (const auto& [name, info] : file.tensors())
    BARY_CHECK(layout.find(name),
               "{}: the file holds tensor {}, which a model of its config.json does not have; do the two "
               "belong together?",
               (folder / "model.safetensors").string(), quote_if_odd(name));
}

}  // namespace

std::string weights_hash(const Model& model) {
  return weights_sha256(views(model.parameters(), model.parameters().values(), ""));
}

std::string save_model(const std::filesystem::path& folder, const Model& model, const Tokenizers& tokenizers,
                       AdamW* optimizer, const nlohmann::json& state) {
  Checkpoint c;
  c.config = to_json(model.config());
  c.state = state;
  if (tokenizers.text) c.tokenizer = tokenizers.text->to_json();
  if (tokenizers.source) c.source_tokenizer = tokenizers.source->to_json();
  c.weights = views(model.parameters(), model.parameters().values(), "");
  if (optimizer) {
    c.optimizer = views(model.parameters(), optimizer->moment1(), "exp_avg.");
    auto second = views(model.parameters(), optimizer->moment2(), "exp_avg_sq.");
    c.optimizer.insert(c.optimizer.end(), second.begin(), second.end());
    c.state["updates"] = optimizer->updates();
  }
  return save_checkpoint(folder, c);
}

std::filesystem::path find_checkpoint(const std::filesystem::path& folder, bool best_first) {
  if (checkpoint_exists(folder)) return folder;
  std::array<const char*, 2> names{"last", "best"};
  if (best_first) std::swap(names[0], names[1]);
  for (const char* name : names)
    if (checkpoint_exists(folder / name)) return folder / name;
  std::error_code ignored;
  for (const auto& place : {folder, folder / names[0], folder / names[1]})
    BARY_CHECK(!std::filesystem::exists(place / "model.safetensors", ignored),
               "{} has weights but no manifest.json, which says what belongs to them; copy the whole folder of the "
               "checkpoint",
               place.string());
  fail("{}: no checkpoint here (looked for it, for best and for last in it); train one with `bary train --out_dir {}`",
       folder.string(), folder.string());
}

namespace {

// Before anything of the model is allocated: a config.json that promises more than the file holds is refused here.
ModelConfig checked_config(const LoadedCheckpoint& c) {
  ModelConfig config = model_config_from_json(c.config, (c.folder / "config.json").string());
  int64_t held = 0;
  for (const auto& [name, info] : c.weights.tensors()) held += info.count;
  const int64_t promised = count_parameters(config).total;
  BARY_CHECK(
      promised <= held,
      "{}: config.json describes a model of {} numbers and model.safetensors holds {}; do the two belong together?",
      c.folder.string(), promised, held);
  return config;
}

// Ids of a tokenizer index rows of the model: none may lie beyond them.
Tokenizer checked_tokenizer(const LoadedCheckpoint& c, std::string_view json, const char* name, int64_t vocab) {
  const std::string what = (c.folder / name).string();
  Tokenizer t = Tokenizer::from_json(json, what);
  BARY_CHECK(t.vocab_size() <= vocab, "{}: has {} tokens, the model of its config.json {}; do the two belong together?",
             what, t.vocab_size(), vocab);
  return t;
}

void read_weights(const LoadedCheckpoint& c, const Model& model) {
  check_no_more(c.weights, model.parameters(), c.folder);
  read_all(c.weights, model.parameters(), model.parameters().values(), "");
  model.parameters().changed();
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& folder, const Reading& reading) {
  LoadedModel out;
  LoadedCheckpoint c = load_checkpoint(find_checkpoint(folder, true), {.optimizer = false});
  const ModelConfig config = checked_config(c);
  BARY_CHECK(!config.has_source(),
             "{}: this is a model of pairs (arch={}), and a model of one text is asked for; let it answer sources with "
             "`bary translate {}`",
             folder.string(), arch_name(config), folder.string());
  out.model = std::make_unique<LanguageModel>(read_as(config, reading), 0);
  read_weights(c, *out.model);
  if (!c.tokenizer.empty()) out.tokenizer = checked_tokenizer(c, c.tokenizer, "tokenizer.json", config.vocab_size);
  out.state = c.state;
  out.folder = c.folder;
  return out;
}

LoadedSeq2Seq load_seq2seq(const std::filesystem::path& folder) {
  LoadedSeq2Seq out;
  LoadedCheckpoint c = load_checkpoint(find_checkpoint(folder, true), {.optimizer = false});
  const ModelConfig config = checked_config(c);
  BARY_CHECK(config.has_source(),
             "{}: this is a model of one text (arch={}), and a model of pairs is asked for; train one with `bary train "
             "--arch encoder-decoder --task copy`",
             folder.string(), arch_name(config));
  BARY_CHECK(!c.tokenizer.empty(), "{}: the checkpoint has no tokenizer.json, so nothing can be read or written",
             c.folder.string());
  out.model = make_seq2seq(config, 0);
  read_weights(c, *out.model);
  out.target = checked_tokenizer(c, c.tokenizer, "tokenizer.json", config.vocab_size);
  const bool one = c.source_tokenizer.empty();
  out.source = checked_tokenizer(c, one ? c.tokenizer : c.source_tokenizer,
                                 one ? "tokenizer.json" : "source_tokenizer.json", config.source_vocab_size);
  out.state = c.state;
  out.folder = c.folder;
  return out;
}

ModelConfig checkpoint_config(const std::filesystem::path& folder) {
  return checked_config(load_checkpoint(find_checkpoint(folder, true), {.optimizer = false}));
}

// Where a run goes on: `last`, but for a later `best` that was saved with its optimiser.
static std::filesystem::path latest_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path last = find_checkpoint(folder, false), best = folder / "best";
  auto step = [](const std::filesystem::path& checkpoint) {  // as it says of itself; whether that is whole is seen next
    std::error_code ignored;
    if (!std::filesystem::exists(checkpoint / "optimizer.safetensors", ignored)) return int64_t{-1};
    const auto state = nlohmann::json::parse(std::ifstream(checkpoint / "state.json"), nullptr, false);
    const bool known = state.is_object() && state.contains("step") && state["step"].is_number_integer();
    return known ? state["step"].get<int64_t>() : int64_t{-1};
  };
  return checkpoint_exists(best) && step(best) > step(last) ? best : last;
}

nlohmann::json resume_into(const std::filesystem::path& folder, Model& model, AdamW& optimizer) {
  LoadedCheckpoint c = load_checkpoint(latest_checkpoint(folder));
  BARY_CHECK(c.optimizer.has_value(),
             "{}: the checkpoint has no optimiser state, so the run cannot go on bit for bit; start "
             "from its weights with --init_from {}",
             c.folder.string(), c.folder.string());
  Parameters& p = model.parameters();
  check_no_more(c.weights, p, c.folder);
  const auto updates = c.state.find("updates");
  BARY_CHECK(updates != c.state.end() && updates->is_number_integer() && updates->get<int64_t>() >= 0,
             "{}: state.json lacks the number of updates; the checkpoint is incomplete", c.folder.string());
  check_all(c.weights, p, "", c.folder / "model.safetensors");
  check_all(*c.optimizer, p, "exp_avg.", c.folder / "optimizer.safetensors");
  check_all(*c.optimizer, p, "exp_avg_sq.", c.folder / "optimizer.safetensors");
  read_all(c.weights, p, p.values(), "");
  read_all(*c.optimizer, p, optimizer.moment1(), "exp_avg.");
  read_all(*c.optimizer, p, optimizer.moment2(), "exp_avg_sq.");
  p.changed();
  optimizer.restore(updates->get<int64_t>());
  return c.state;
}

}  // namespace bary
