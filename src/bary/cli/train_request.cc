// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/train_request.h"

#include <unistd.h>

#include "bary/base/file.h"
#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/run.h"
#include "bary/kernel/target.h"

namespace bary {

Options TrainRequest::options() {
  Options o("train");
  o.add("config", &config_file, "TOML file with any of these keys", {.value_name = "FILE"});
  o.add("model", &preset, "named settings to begin with: chapter, token, head, heads, two-blocks, gpt2, ...",
        {.value_name = "NAME"});
  train.describe(o);
  model.describe(o);
  o.group("Output");
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

// The value of --key among raw arguments, before they are parsed in order
std::string early(std::span<const std::string> args, const std::string& key) {
  std::string found;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--" + key && i + 1 < args.size()) found = args[i + 1];
    if (args[i].rfind("--" + key + "=", 0) == 0) found = args[i].substr(key.size() + 3);
  }
  return found;
}

// Keys that decide the shape of a model or the text of a run: a resumed run keeps them.
bool fixed_by_the_run(const std::string& key) {
  for (const char* k : {"n_layer",
                        "n_head",
                        "n_embd",
                        "vocab_size",
                        "block_size",
                        "context",
                        "d_head",
                        "n_kv_head",
                        "mlp_ratio",
                        "pos",
                        "norm",
                        "norm_kind",
                        "mlp",
                        "mixer",
                        "mask",
                        "window",
                        "scale",
                        "residual",
                        "attn_proj",
                        "qkv_bias",
                        "bias",
                        "head_bias",
                        "tie_embeddings",
                        "tokenizer",
                        "ties",
                        "arch",
                        "attend",
                        "task",
                        "source_vocab_size",
                        "n_encoder_layer",
                        "share_embeddings",
                        "embed_scale",
                        "source_tokenizer",
                        "prefix"})
    if (key == k) return true;
  return false;
}

}  // namespace

TrainRequest parse_train_request(std::span<const std::string> args, std::vector<std::string>& changes) {
  TrainRequest r;
  if (std::string name = early(args, "model"); !name.empty()) r.model = bary::preset(name);
  Options first = r.options();
  const bool resume = [&] {
    TrainRequest probe;
    Options o = probe.options();
    if (std::string file = early(args, "config"); !file.empty()) o.parse_toml(file);
    o.parse_args(args);
    r.train.out_dir = probe.train.out_dir;
    return probe.train.init_from == "resume";
  }();
  nlohmann::json before;
  if (resume) {
    const std::string path = r.train.out_dir + "/run.json";
    nlohmann::json record = parse_json(read_file(path), path);
    BARY_CHECK(record.is_object() && record.contains("options"), "{}: not the record of a run; give the out_dir of one",
               path);
    before = record["options"];
    first.from_json(before, path);
  }
  if (std::string file = early(args, "config"); !file.empty()) first.parse_toml(file);
  auto rest = first.parse_args(args);
  BARY_CHECK(rest.size() <= 1,
             "train: one text is learned from, {} came ({}, {}, ...); name a file, a folder or a text", rest.size(),
             rest[0], rest[1]);
  if (!rest.empty()) first.set("dataset", rest[0]);
  if (resume) {
    for (const OptionChange& c : first.differences(before)) {
      if (c.name == "init_from" || c.name == "out_dir" || c.name == "json" || c.name == "config") continue;
      BARY_CHECK(!fixed_by_the_run(c.name),
                 "train: {} was {} in this run and is {} now; a resumed run keeps its shape, start from "
                 "its weights with --init_from {}/last instead",
                 c.name, c.before, c.after, r.train.out_dir);
      changes.push_back(fmt::format("{}: {} -> {}", c.name, c.before, c.after));
    }
  }
  r.train.check();
  TrainConfig& t = r.train;
  if (!t.task.empty() && !resume) {
    BARY_CHECK(
        t.tokenizer != "bpe" || !first.is_set("tokenizer"),
        "train: bpe learns its merges from one text, and --task {} has pairs of texts; leave --tokenizer out (their "
        "characters), or make one with `bary tokenizer train` and name its tokenizer.json",
        t.task);
    if (t.tokenizer == "bpe") t.tokenizer = "char";
  }
  BARY_CHECK(
      t.sample_interval == 0 || r.model.arch != Arch::encoder,
      "train: --sample_interval {} lets the model write, and an encoder writes nothing; leave it out, and ask it "
      "with `bary fill` when it is trained",
      t.sample_interval);
  BARY_CHECK(
      !t.task.empty() ||
          (t.data.empty() && t.data_target.empty() && t.source_tokenizer.empty() && !t.prefix && t.batch_tokens == 0),
      "train: data, data_target, source_tokenizer, prefix and batch_tokens are of pairs of texts; add --task (pairs "
      "for a file of your own)");
  BARY_CHECK(t.task == "pairs" || (t.data.empty() && t.data_target.empty()),
             "train: --task {} makes its own pairs and --data names a file; choose --task pairs for the file", t.task);
  BARY_CHECK(
      !t.prefix || (r.model.arch == Arch::decoder && r.model.mask == Mask::causal),
      "train: prefix shows the source to all of a causal line (arch=decoder, mask=causal); this model has another "
      "way to read it");
  BARY_CHECK(t.truncate == 0 || r.model.recurrent(),
             "train: truncate cuts the gradient of recurrent layers, and this is "
             "arch={}; leave it out",
             arch_name(r.model));
  BARY_CHECK(
      t.batch_tokens == 0 || t.gradient_accumulation_steps == 1,
      "train: batch_tokens {} is the budget of a whole update; raise it instead of gradient_accumulation_steps {}",
      t.batch_tokens, t.gradient_accumulation_steps);
  // Of pairs the vocabularies come with the data; that there is a source is known now.
  const bool reads = r.model.arch == Arch::encoder_decoder || r.model.recurrent();
  if (!r.train.task.empty() && reads != r.model.has_source())
    r.model.source_vocab_size = reads ? r.model.vocab_size : 0;
  r.model.check();
  return r;
}

}  // namespace bary
