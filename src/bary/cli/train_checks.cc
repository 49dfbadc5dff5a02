// SPDX-License-Identifier: Apache-2.0
#include "bary/cli/train_checks.h"

#include "bary/io/run_folder.h"
#include "bary/train/data.h"

namespace bary {
namespace {

void check_text(const TrainRequest& r, const Options& asked) {
  asked.refuse(
      {"data", "data_target", "source_tokenizer", "prefix", "batch_tokens", "symbols", "min_length", "max_length"},
      "is of pairs of texts, and there is no --task (pairs for a file of your own)");
  if (is_token_folder(r.train.dataset)) {
    const std::filesystem::path folder = r.train.dataset;
    const std::string why =
        fmt::format("is of a text, and {} holds token files, which are coded and parted already", folder.string());
    asked.refuse({"tokenizer", "ties", "val_fraction", "corpus"}, why);
    std::error_code ignored;
    if (std::filesystem::exists(folder / "meta.json", ignored)) asked.refuse({"vocab_size"}, why);
  }
  BARY_CHECK(r.train.sample_interval == 0 || r.model.arch != Arch::encoder,
             "train: --sample_interval {} lets the model write, and an encoder writes nothing; leave it out, and ask "
             "it with `bary fill` when it is trained",
             r.train.sample_interval);
}

void check_pairs(const TrainRequest& r, const Options& asked) {
  const TrainConfig& t = r.train;
  if (t.task != "restoration")
    asked.refuse({"dataset", "corpus"}, fmt::format("names a text, and --task {} has pairs of its own", t.task));
  BARY_CHECK(t.tokenizer != "bpe" || !asked.asked("tokenizer"),
             "train: bpe learns its merges from one text, and --task {} has pairs of texts; leave --tokenizer out "
             "(their characters), or make one with `bary tokenizer train` and name its tokenizer.json",
             t.task);
  BARY_CHECK(t.task == "pairs" || (t.data.empty() && t.data_target.empty()),
             "train: --task {} makes its own pairs and --data names a file; choose --task pairs for the file", t.task);
  if (!draws_letters(t.task))
    asked.refuse({"symbols", "min_length", "max_length"},
                 fmt::format("is of the tasks copy, reverse and sort, and this is {}", t.task));
  BARY_CHECK(
      !t.prefix || (r.model.arch == Arch::decoder && r.model.mask == Mask::causal && r.model.mixer == Mixer::attention),
      "train: prefix shows the source to all of a causal line (arch=decoder, mask=causal, mixer=attention); this "
      "model has another way to read it");
  BARY_CHECK(t.batch_tokens == 0 || t.gradient_accumulation_steps == 1,
             "train: batch_tokens {} is the budget of a whole update; raise it instead of gradient_accumulation_steps "
             "{}",
             t.batch_tokens, t.gradient_accumulation_steps);
}

void check_optimiser(const TrainConfig& t, const Options& asked) {
  const Schedule& s = t.schedule;
  if (s.kind == ScheduleKind::constant)
    asked.refuse({"min_lr", "lr_decay_iters"}, "ends a decay, and lr_schedule=constant has none");
  if (s.kind == ScheduleKind::inv_sqrt)
    asked.refuse({"lr_decay_iters"}, "ends a decay, and lr_schedule=inv_sqrt goes on for ever");
  if (s.kind != ScheduleKind::wsd) asked.refuse({"decay_frac"}, "is the share that decays under lr_schedule=wsd");
  if (t.adamw.weight_decay == 0) asked.refuse({"decay_group"}, "is what weight_decay shrinks, and weight_decay is 0");
}

void check_watching(const TrainConfig& t, const Options& asked) {
  if (t.sample_interval == 0)
    asked.refuse({"sample_tokens", "sample_prompt"}, "is of samples, and sample_interval is 0: none are written");
  BARY_CHECK(t.patience == 0 || t.val_fraction > 0,
             "train: patience {} waits for a better held-out loss, and val_fraction 0 holds nothing out; leave one out",
             t.patience);
  BARY_CHECK(t.patience == 0 || t.eval_interval > 0,
             "train: patience {} counts evaluations, and eval_interval 0 makes none on the way; leave one out",
             t.patience);
  BARY_CHECK(
      t.save_interval == 0 || t.always_save_checkpoint,
      "train: save_interval {} saves on the way, and always_save_checkpoint false keeps the best alone; leave one "
      "out",
      t.save_interval);
}

// Of a vocabulary that is there already, nothing is learned.
void check_tokenizer(const TrainConfig& t, const Options& asked) {
  if (t.task.empty() && t.tokenizer != "bpe" && asked.asked("tokenizer"))
    asked.refuse({"vocab_size", "ties"},
                 fmt::format("is of a vocabulary to be learned, and --tokenizer is {}", t.tokenizer));
}

}  // namespace

bool draws_letters(const std::string& task) { return task == "copy" || task == "reverse" || task == "sort"; }

void check_together(const TrainRequest& r, const Options& asked) {
  r.train.check();
  r.train.task.empty() ? check_text(r, asked) : check_pairs(r, asked);
  check_tokenizer(r.train, asked);
  check_optimiser(r.train, asked);
  check_watching(r.train, asked);
  BARY_CHECK(r.train.truncate == 0 || r.model.recurrent(),
             "train: truncate cuts the gradient of recurrent layers, and this is arch={}; leave it out",
             arch_name(r.model));
  for (const Idle& idle : idle_options(r.model)) asked.refuse(idle.names, idle.why);
}

void check_not_overwritten(const TrainRequest& r) {
  if (r.overwrite || r.train.eval_only || r.train.init_from == "resume") return;
  const std::filesystem::path folder = r.train.out_dir;
  std::error_code ignored;
  const bool held = checkpoint_exists(folder / "last") || checkpoint_exists(folder / "best") ||
                    std::filesystem::exists(folder / "run.json", ignored);
  BARY_CHECK(!held,
             "train: {} holds a run already; go on with it by --init_from resume, choose another --out_dir, or let it "
             "go with --overwrite",
             r.train.out_dir);
}

}  // namespace bary
