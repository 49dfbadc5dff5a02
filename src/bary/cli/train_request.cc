// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/train_request.h"

#include <unistd.h>

#include <algorithm>

#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/run.h"
#include "bary/cli/train_checks.h"
#include "bary/kernel/target.h"
#include "bary/train/checkpoint.h"

namespace bary {

Options TrainRequest::options() {
  Options o("train");
  o.add("config", &config_file, "TOML file with any of these keys", {.value_name = "FILE"});
  o.add("model", &preset, "named settings to begin with: chapter, token, head, heads, two-blocks, gpt2, ...",
        {.value_name = "NAME"});
  train.describe(o);
  model.describe(o);
  o.group("Output");
  o.add("overwrite", &overwrite, "a run that out_dir holds may go");
  o.add("json", &json, "print the result as JSON");
  return o;
}

nlohmann::json TrainRequest::record() {
  nlohmann::json r;
  r["options"] = options().to_json();
  r["version"] = version_text();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  r["machine"] = {{"isa", kernel::active_isa()}, {"cores", available_cores()}, {"threads", threads()}, {"host", host}};
  return r;
}

std::optional<TrainConfig> recorded_training(const std::filesystem::path& checkpoint) {
  for (const auto& where : {checkpoint / "run.json", checkpoint.parent_path() / "run.json"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(where, ignored)) continue;
    const nlohmann::json j = parse_json(read_file(where), where.string());
    if (!j.contains("options")) continue;
    TrainRequest run;
    run.options().from_json(j["options"], where.string());
    return run.train;
  }
  return std::nullopt;
}

namespace {

bool one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A model's options but the one that no parameter depends on
std::vector<std::string> shape_options() {
  ModelConfig any;
  Options o;
  any.describe(o);
  std::vector<std::string> names = o.names();
  std::erase(names, "dropout");
  return names;
}

void parse(TrainRequest& r, Options& o, const std::string& config_file, std::span<const std::string> args) {
  if (!config_file.empty()) {
    o.parse_toml(config_file);
    BARY_CHECK(!o.asked("config"),
               "{}: config names another file; write its keys here, or give --config on the command line", config_file);
  }
  const std::vector<std::string> texts = o.parse_args(args);
  BARY_CHECK(texts.size() <= 1,
             "train: one text is learned from, {} came ({}, {}, ...); name a file, a folder or a text", texts.size(),
             texts[0], texts[1]);
  if (texts.empty()) return;
  BARY_CHECK(o.source("dataset") != OptionSource::command_line,
             "train: two texts came, {} and --dataset {}; name one of them", texts[0], r.train.dataset);
  o.set("dataset", texts[0]);
}

// Where values begin decides what they are, so it is looked at before.
TrainRequest first_look(std::span<const std::string> args) {
  TrainRequest look;
  Options o = look.options();
  o.parse_args(args);
  if (!look.config_file.empty()) o.parse_toml(look.config_file);
  return look;
}

nlohmann::json record_of(const std::string& out_dir) {
  const std::string path = out_dir + "/run.json";
  const nlohmann::json record = parse_json(read_file(path), path);
  BARY_CHECK(record.is_object() && record.contains("options") && record["options"].is_object(),
             "{}: not the record of a run; give the out_dir of one", path);
  nlohmann::json options = record["options"];
  for (const char* once : {"eval_only", "overwrite", "json", "config"}) options.erase(once);  // not of the run
  return options;
}

// A resumed run keeps its model and its text; what else is asked for is told.
void compare_with_record(const Options& o, const nlohmann::json& record, std::vector<std::string>& changes) {
  const std::vector<std::string> shape = shape_options(),
                                 fixed{"model",  "tokenizer",   "ties", "task", "source_tokenizer",
                                       "prefix", "val_fraction"};
  for (const OptionChange& c : o.differences(record)) {
    if (!o.asked(c.name) || one_of({"init_from", "out_dir", "json", "config", "overwrite", "eval_only"}, c.name))
      continue;
    BARY_CHECK(!one_of(shape, c.name) && !one_of(fixed, c.name),
               "train: {} was {} in this run and is {} now; a resumed run keeps its model and its text: leave it out, "
               "or begin another run",
               c.name, c.before.empty() ? "not set" : c.before, c.after);
    changes.push_back(fmt::format("{}: {} -> {}", c.name, c.before, c.after));
  }
}

// A run from another's weights keeps their shape.
void compare_with_checkpoint(const Options& o, const nlohmann::json& shape, const std::string& from) {
  o.refuse({"model", "init"}, fmt::format("is of a new model, and this one begins with the weights of {}", from));
  const std::vector<std::string> names = shape_options();
  for (const OptionChange& c : o.differences(shape))
    BARY_CHECK(!one_of(names, c.name),
               "train: {} is {} in {} and {} was asked for; its weights have a shape, leave it out or train from "
               "scratch",
               c.name, c.before, from, c.after);
  std::error_code ignored;
  if (std::filesystem::exists(find_checkpoint(from, true) / "tokenizer.json", ignored))
    o.refuse({"tokenizer", "source_tokenizer", "ties"},
             fmt::format("is of a new vocabulary, and {} has the one its tokens are of", from));
}

}  // namespace

TrainRequest parse_train_request(std::span<const std::string> args, std::vector<std::string>& changes) {
  const TrainRequest look = first_look(args);
  const std::string& from = look.train.init_from;
  TrainRequest r;
  Options o = r.options();
  nlohmann::json before;
  if (from == "resume") {
    before = record_of(look.train.out_dir);
    o.from_json(before, look.train.out_dir + "/run.json");
  } else {
    if (from != "scratch") {
      r.model = checkpoint_config(from);
    } else if (!look.preset.empty()) {
      r.model = bary::preset(look.preset);
    }
    before = o.to_json();
  }
  parse(r, o, look.config_file, args);
  if (from == "resume") {
    compare_with_record(o, before, changes);
  } else if (from != "scratch") {
    compare_with_checkpoint(o, before, from);
  }
  // Of pairs the vocabularies come with the data; that there is a source is known now, and decides what does nothing.
  const bool reads = r.model.arch == Arch::encoder_decoder || r.model.recurrent();
  if (!r.train.task.empty() && reads != r.model.has_source())
    r.model.source_vocab_size = reads ? r.model.vocab_size : 0;
  check_together(r, o);
  if (!r.train.task.empty() && r.train.tokenizer == "bpe") r.train.tokenizer = "char";
  r.model.check();
  return r;
}

}  // namespace bary
