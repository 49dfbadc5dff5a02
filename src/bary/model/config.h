// SPDX-License-Identifier: Apache-2.0
// What a model is made of, by nanoGPT's names where it has one. Every rung of the chapter's ladder is a setting.
#pragma once
#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bary/base/options.h"
#include "bary/nn/block.h"

namespace bary {

enum class Arch {
  decoder,          // causal throughout: what comes next
  encoder,          // every token sees every other: what is missing
  encoder_decoder,  // a source without mask, a causal target that reads it
  rnn,              // a state instead of attention: Elman 1990,
  lstm,             //   Hochreiter and Schmidhuber 1997,
  gru,              //   Cho et al. 2014; with a source two of them, bridged by the last state
};
enum class Attend { none, dot, additive };  // what a recurrent target reads of its source beside the last state

struct ModelConfig {
  Arch arch = Arch::decoder;
  int64_t vocab_size = 1024;
  int64_t source_vocab_size = 0;  // of a source in a vocabulary of its own tokens; 0: there is no source
  int64_t n_encoder_layer = 0;    // 0 = n_layer
  bool share_embeddings = false;  // one table for source and target
  bool embed_scale = false;       // tokens times sqrt(n_embd)
  Attend attend = Attend::none;
  int64_t block_size = 128;  // the window trained on
  int64_t context = 0;       // positions the model can be run at; 0 = block_size
  int64_t n_layer = 1, n_head = 4, n_kv_head = 0, n_embd = 128, d_head = 0;  // 0: n_head, n_embd / n_head
  int64_t mlp_ratio = 4;
  Mixer mixer = Mixer::attention;
  MlpKind mlp = MlpKind::gelu;
  NormPlace norm = NormPlace::pre;
  NormKind norm_kind = NormKind::layer;
  Position pos = Position::learned;
  Mask mask = Mask::causal;
  int64_t window = 0;
  bool scale = true, residual = true, qkv_bias = false, attn_proj = true, bias = true, head_bias = true;
  bool tie_embeddings = false;
  double dropout = 0, rope_theta = 10000, norm_eps = 1e-5;
  RopeScaling rope_scaling = RopeScaling::none;  // reads a rotary model past the window it was trained at
  double rope_factor = 1;                        // how much longer that is
  int64_t rope_original = 0;                     // the window trained at; 0 = block_size
  InitStyle init = InitStyle::pytorch;

  int64_t heads_kv() const { return n_kv_head ? n_kv_head : n_head; }
  int64_t head_width() const { return d_head ? d_head : n_embd / n_head; }
  int64_t positions() const { return context > block_size ? context : block_size; }
  RotaryOptions rotary() const {
    return {rope_theta, rope_scaling, rope_factor, rope_original ? rope_original : block_size};
  }
  int64_t mlp_width() const { return mlp_ratio * n_embd; }
  int64_t encoder_layers() const { return n_encoder_layer ? n_encoder_layer : n_layer; }
  bool recurrent() const { return arch == Arch::rnn || arch == Arch::lstm || arch == Arch::gru; }
  int64_t position_width() const { return pos == Position::rotary ? std::max(n_embd, head_width()) : n_embd; }
  bool learned_positions() const { return pos == Position::learned && !recurrent(); }  // a table that ends
  bool has_source() const { return source_vocab_size > 0; }
  Mask seen() const { return arch == Arch::encoder ? Mask::full : mask; }  // the mask of a single stack
  bool final_norm() const { return n_layer > 0 && (norm == NormPlace::pre || norm == NormPlace::parallel); }
  bool causal() const { return recurrent() || seen() != Mask::full || mixer != Mixer::attention || n_layer == 0; }

  // Refuses what cannot be built, naming both numbers: widths that do not divide, odd rotary heads, sizes below one,
  // a scaling of rotary positions that are not there.
  void check() const;
  void describe(Options& options);  // every field above as an option

 private:
  void describe_shape(Options& options);
  void describe_parts(Options& options);
  void describe_pairs(Options& options);
};

nlohmann::json to_json(const ModelConfig& c);  // the config.json of a checkpoint
// Every key must be there, but for those that earlier files lack (rotary scaling, other arrangements than the
// decoder): absent, they are the default.
ModelConfig model_config_from_json(const nlohmann::json& j, const std::string& what);

// The same weights read another way than they were trained: no parameter depends on it.
struct Reading {
  int64_t block_size = 0;                        // the window; 0: as trained
  RopeScaling rope_scaling = RopeScaling::none;  // none: as the model has it
  double rope_factor = 1;

  void describe(Options& options);  // the rotary settings as options
};
// Refuses a window beyond the positions a model learned, and a factor that nothing uses.
ModelConfig read_as(const ModelConfig& trained, const Reading& r);

// Options that mean nothing for such a model, and why: for those who would refuse them rather than pass over them.
struct Idle {
  std::vector<std::string_view> names;
  std::string why;  // "is of rotary positions, and pos is another"
};
std::vector<Idle> idle_options(const ModelConfig& c);

std::string arch_name(const ModelConfig& c);  // "encoder-decoder", "lstm with a source"

// Named settings: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "chapter", and the rungs of the ladder: "token",
// "average", "average-positions", "average-added", "head-replacing", "head", "heads", "heads-mlp", "block",
// "two-blocks"; with a source: "copy" (the small encoder-decoder of the tasks: 235,851 parameters with 11 tokens),
// "annotated" (The Annotated Transformer's of its copy task: 14,731,787).
std::vector<std::string> preset_names();
ModelConfig preset(const std::string& name);

}  // namespace bary
