// SPDX-License-Identifier: Apache-2.0
#include "bary/train/config.h"

namespace bary {

constexpr double kHuge = 1e12;

void TrainConfig::describe(Options& o) {
  describe_data(o);
  describe_run(o);
  describe_optimiser(o);
  describe_watching(o);
}

void TrainConfig::describe_data(Options& o) {
  o.group("Data");
  o.add("dataset", &dataset,
        "text to learn from: a file, a folder, -, a name (tinyshakespeare, two-nouns, ...), or a folder "
        "with train.bin");
  o.add("corpus", &corpus, "where a named text lies (file or folder)");
  o.add("tokenizer", &tokenizer,
        "bpe, byte, char, or the path of a tokenizer.json; of pairs (--task) char unless another is named, and never "
        "bpe");
  o.add("ties", &ties, "which of two equally frequent pairs is merged first", {.choices = {"first", "hf", "bytes"}});
  o.add("val_fraction", &val_fraction, "share of the tokens, at the end, held out",
        {.min = 0, .max = 1, .below_max = true});
  o.group("Pairs of texts");
  o.add("task", &task,
        "learn pairs: copy, reverse, sort, numbers-words, words-numbers, roman-arabic, arabic-roman, restoration, or "
        "pairs of your own");
  o.add("data", &data, "task=pairs: a file with SOURCE, a tab and TARGET a line", {.value_name = "FILE"});
  o.add("data_target", &data_target, "or the targets in a file of their own, line for line", {.value_name = "FILE"});
  o.add("source_tokenizer", &source_tokenizer,
        "one of the source's own: char, byte, or a tokenizer.json; empty: one for both");
  o.add("symbols", &symbols, "letters of copy, reverse and sort", {.min = 2, .max = 26});
  o.add("min_length", &min_length, "shortest source of them", {.min = 1, .max = 100000});
  o.add("max_length", &max_length, "longest", {.min = 1, .max = 100000});
  o.add("batch_tokens", &batch_tokens, "a budget of tokens for pairs of like length, instead of batch_size (0: none)",
        {.min = 0, .max = 1 << 24});
  o.add("prefix", &prefix, "arch=decoder: all of the source is seen by every token of it");
  o.add("label_smoothing", &label_smoothing, "share of a target's probability spread over the vocabulary",
        {.min = 0, .max = 1, .below_max = true});
  o.group("Recurrent layers");
  o.add("truncate", &truncate, "steps a gradient goes back (0: the whole window)", {.min = 0, .max = 1 << 30});
}

void TrainConfig::describe_run(Options& o) {
  o.group("Run");
  o.add("out_dir", &out_dir, "folder of the run");
  o.add("init_from", &init_from, "scratch, resume, or the folder of a checkpoint to go on from");
  o.add("max_iters", &max_iters, "updates", {.min = 0, .max = kHuge});
  o.add("batch_size", &batch_size, "sequences at once", {.min = 1, .max = 1 << 20});
  o.add("gradient_accumulation_steps", &gradient_accumulation_steps, "batches an update", {.min = 1, .max = 1 << 20});
  o.add("seed", &seed, "of initial values, batches and dropout");
  o.add("threads", &threads, "cores to use (0: all); never changes a result", {.min = 0, .max = 1024});
  o.add("traversal", &traversal,
        {{"auto", Traversal::automatic},
         {"depth_first", Traversal::depth_first},
         {"layer_by_layer", Traversal::layer_by_layer}},
        "a sequence through all layers at a time (small models), or a layer for all sequences (large and recurrent "
        "ones); changes speed and memory");
  o.add("on_nan", &on_nan, {{"stop", OnNan::stop}, {"skip", OnNan::skip}},
        "what a loss or gradient that is not finite does");
}

void TrainConfig::describe_optimiser(Options& o) {
  o.group("Optimiser (AdamW)");
  o.add("learning_rate", &schedule.learning_rate, "peak", {.min = 0, .max = 1e6});
  o.add("lr_schedule", &schedule.kind,
        {{"constant", ScheduleKind::constant},
         {"cosine", ScheduleKind::cosine},
         {"linear", ScheduleKind::linear},
         {"wsd", ScheduleKind::wsd},
         {"inv_sqrt", ScheduleKind::inv_sqrt}},
        "its course");
  o.add("warmup_iters", &schedule.warmup_iters, "updates of linear warm-up", {.min = 0, .max = kHuge});
  o.add("lr_decay_iters", &schedule.decay_iters, "update at which min_lr is reached (0: max_iters)",
        {.min = 0, .max = kHuge});
  o.add("min_lr", &schedule.min_lr, "where the decay ends", {.min = 0, .max = 1e6});
  o.add("decay_frac", &schedule.decay_frac, "share that decays under wsd", {.min = 0, .max = 1});
  o.add("beta1", &adamw.beta1, "memory of the mean", {.min = 0, .max = 1, .below_max = true});
  o.add("beta2", &adamw.beta2, "memory of the square", {.min = 0, .max = 1, .below_max = true});
  o.add("eps", &adamw.eps, "added to the root", {.min = 0, .max = 1});
  o.add("weight_decay", &adamw.weight_decay, "decoupled decay", {.min = 0, .max = 100});
  o.add("decay_group", &adamw.decay,
        {{"all", DecayGroup::all}, {"matrices", DecayGroup::matrices}, {"linear", DecayGroup::linear}},
        "what decays: all (PyTorch), matrices and embeddings (nanoGPT), or linear layers");
  o.add("grad_clip", &adamw.grad_clip, "largest norm of the gradient (0: off)", {.min = 0, .max = 1e12});
}

void TrainConfig::describe_watching(Options& o) {
  o.group("Watching");
  o.add("eval_interval", &eval_interval, "updates between evaluations (0: only before the first and after the last)",
        {.min = 0, .max = kHuge});
  o.add("eval_iters", &eval_iters, "fixed windows an evaluation during the run (all: the whole held-out text)",
        {.min = 1, .max = kHuge, .words = {{"all", 0}}});
  o.add("eval_seed", &eval_seed, "names those windows");
  o.add("eval_only", &eval_only, "evaluate and stop");
  o.add("log_interval", &log_interval, "updates between lines of metrics.jsonl", {.min = 1, .max = kHuge});
  o.add("sample_interval", &sample_interval, "updates between samples (0: none)", {.min = 0, .max = kHuge});
  o.add("sample_tokens", &sample_tokens, "tokens of a sample", {.min = 1, .max = 1 << 20});
  o.add("sample_prompt", &sample_prompt, "what a sample goes on from");
  o.add("save_interval", &save_interval, "updates between saves (0: with each evaluation)", {.min = 0, .max = kHuge});
  o.add("always_save_checkpoint", &always_save_checkpoint, "keep the last state too, not only the best");
  o.add("patience", &patience, "evaluations without improvement before stopping (0: never)", {.min = 0, .max = kHuge});
}

Schedule TrainConfig::full_schedule() const {
  Schedule s = schedule;
  if (s.decay_iters == 0) s.decay_iters = std::max<int64_t>(max_iters, 1);
  return s;
}

void TrainConfig::check() const {
  TrainConfig copy = *this;
  Options ranges;  // adding an option compares what it holds with its own rule
  copy.describe(ranges);
  check_schedule(full_schedule());
  BARY_CHECK(!out_dir.empty(), "out_dir is empty; name the folder the run is to be written to");
}

}  // namespace bary
