// SPDX-License-Identifier: Apache-2.0
// Everything a training run is decided by, by nanoGPT's names where it has one; the keys of the TOML file, the flags
// and the record of a run are this one description.
#pragma once
#include <string>

#include "bary/base/options.h"
#include "bary/model/config.h"
#include "bary/train/adamw.h"
#include "bary/train/gradient.h"
#include "bary/train/schedule.h"

namespace bary {

enum class OnNan { stop, skip };

struct TrainConfig {
  // data
  std::string dataset = "tinyshakespeare";  // file, folder, "-", a name, or a folder of train.bin and val.bin
  std::string corpus;                       // where a named text lies
  std::string tokenizer = "bpe";            // bpe, byte, char, or the path of a tokenizer.json
  std::string ties = "first";
  double val_fraction = 0.1;
  // pairs of texts instead of one (text/pairs.h)
  std::string task, data, data_target, source_tokenizer;
  int64_t symbols = 8, min_length = 3, max_length = 20;
  int64_t batch_tokens = 0;  // a budget of tokens instead of batch_size; 0: none
  bool prefix = false;       // one stack for both texts: the source is seen by all of it
  double label_smoothing = 0;
  int64_t truncate = 0;  // recurrent layers: steps a gradient goes back
  // run
  std::string out_dir = "out", init_from = "scratch";  // scratch, resume, or the folder of a checkpoint
  int64_t batch_size = 64, gradient_accumulation_steps = 1, max_iters = 3000;
  int64_t threads = 0;
  uint64_t seed = 1337;
  OnNan on_nan = OnNan::stop;
  Traversal traversal = Traversal::automatic;
  // optimiser
  AdamWOptions adamw;
  Schedule schedule{ScheduleKind::constant, 1e-3, 1e-4, 0, 0, 0.2};  // the chapter's: constant 1e-3
  // watching
  int64_t eval_interval = 250, eval_iters = 200, log_interval = 10, save_interval = 0, patience = 0;
  int64_t sample_interval = 0, sample_tokens = 64;
  uint64_t eval_seed = 42;
  std::string sample_prompt = "\n";
  bool always_save_checkpoint = true, eval_only = false;

  void describe(Options& options);  // every field, the model's excepted
  void check() const;
  Schedule full_schedule() const;  // lr_decay_iters 0 = max_iters
  int64_t sequences() const { return batch_size * gradient_accumulation_steps; }

 private:
  void describe_data(Options& options);
  void describe_run(Options& options);
  void describe_optimiser(Options& options);
  void describe_watching(Options& options);
};

}  // namespace bary
