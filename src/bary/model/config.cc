// SPDX-License-Identifier: Apache-2.0
#include "bary/model/config.h"

#include <algorithm>

#include "bary/base/json.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"

namespace bary {

static void check_rope_scaling(const ModelConfig& c) {
  BARY_CHECK(c.rope_original >= 0, "rope_original is {}; it is the window trained at, or 0 for block_size",
             c.rope_original);
  if (c.rope_scaling == RopeScaling::none) {
    BARY_CHECK(c.rope_factor == 1, "rope_factor {} does nothing without rope_scaling; set it to linear, ntk or yarn",
               c.rope_factor);
    return;
  }
  BARY_CHECK(c.pos == Position::rotary,
             "rope_scaling slows rotary positions down and this model has others; set pos=rotary or rope_scaling=none");
  check_rotary(c.head_width(), c.rotary());
}

static void check_arrangement(const ModelConfig& c) {
  BARY_CHECK(c.source_vocab_size >= 0 && c.n_encoder_layer >= 0,
             "source_vocab_size {} and n_encoder_layer {} must not be negative", c.source_vocab_size,
             c.n_encoder_layer);
  BARY_CHECK(c.arch != Arch::encoder_decoder || c.has_source(),
             "arch=encoder-decoder reads a source and source_vocab_size is 0; train it on pairs (--task)");
  BARY_CHECK(!c.has_source() || c.arch == Arch::encoder_decoder || c.recurrent(),
             "arch={} has one stack and source_vocab_size is {}; choose encoder-decoder, rnn, lstm or gru for a source",
             arch_name(c), c.source_vocab_size);
  BARY_CHECK(!c.share_embeddings || (c.has_source() && c.source_vocab_size == c.vocab_size),
             "share_embeddings needs a source of the target's vocabulary; they have {} and {} tokens",
             c.source_vocab_size, c.vocab_size);
  BARY_CHECK(c.attend == Attend::none || (c.recurrent() && c.has_source()),
             "attend is what a recurrent target reads of its source; this is arch={} {} a source", arch_name(c),
             c.has_source() ? "with" : "without");
  BARY_CHECK(!c.recurrent() || !c.has_source() || c.encoder_layers() == c.n_layer,
             "n_encoder_layer is {} and n_layer {}; the last state of each recurrent layer is where one of the target "
             "begins, so there must be as many",
             c.n_encoder_layer, c.n_layer);
  BARY_CHECK(c.arch != Arch::encoder_decoder || c.n_layer > 0,
             "n_layer is 0; a target that reads a source needs a block to do it");
  BARY_CHECK(!c.recurrent() || c.n_layer > 0, "n_layer is 0; arch={} needs at least one layer", arch_name(c));
  BARY_CHECK(!c.has_source() || c.recurrent() || (c.mixer == Mixer::attention && c.norm != NormPlace::parallel),
             "an encoder-decoder's blocks attend and have a norm of their own for each part; set mixer=attention and "
             "norm=pre, post or none");
  BARY_CHECK(c.arch != Arch::encoder_decoder || c.mask != Mask::full,
             "mask=full shows an encoder-decoder's target the tokens it is to predict; set mask=causal or window (the "
             "source is seen in full either way)");
}

void ModelConfig::check() const {
  check_arrangement(*this);
  const std::pair<const char*, int64_t> sizes[] = {{"vocab_size", vocab_size},
                                                   {"block_size", block_size},
                                                   {"n_head", n_head},
                                                   {"n_embd", n_embd},
                                                   {"mlp_ratio", mlp_ratio}};
  for (auto [name, size] : sizes) BARY_CHECK(size >= 1, "{} is {}; it must be at least 1", name, size);
  BARY_CHECK(n_layer >= 0 && d_head >= 0 && n_kv_head >= 0,
             "n_layer {}, d_head {} and n_kv_head {} must not be negative", n_layer, d_head, n_kv_head);
  BARY_CHECK(recurrent() || d_head > 0 || n_embd % n_head == 0,
             "n_embd {} is not divisible by n_head {}; choose another n_head, or give the width of a head with d_head",
             n_embd, n_head);
  BARY_CHECK(n_head % heads_kv() == 0, "n_head {} is not a multiple of n_kv_head {}; choose one that divides it",
             n_head, heads_kv());
  BARY_CHECK(
      pos != Position::rotary || head_width() % 2 == 0,
      "rotary positions turn pairs of channels, so the width of a head must be even; it is {}; change n_head or d_head",
      head_width());
  BARY_CHECK(mask != Mask::window || window > 0, "mask=window needs window of at least 1, got {}", window);
  BARY_CHECK(context == 0 || context >= block_size, "context {} is shorter than block_size {}; give at least as much",
             context, block_size);
  BARY_CHECK(attn_proj || mixer != Mixer::attention || n_head * head_width() == n_embd,
             "without an output matrix the heads must make up n_embd: {} x {} is not {}; set attn_proj or d_head",
             n_head, head_width(), n_embd);
  BARY_CHECK(pos == Position::learned || positions() <= (int64_t{1} << 28) / position_width(),
             "context {} with a width of {} would need a table of positions of over 2^28 numbers; ask for fewer "
             "positions",
             positions(), position_width());
  check_rope_scaling(*this);
  // Sizes are products of these: a model that could not be addressed is refused before anything is allocated.
  const double most = 1e12;
  const double layers = static_cast<double>(n_layer + 1 + (has_source() ? encoder_layers() : 0));
  BARY_CHECK(
      static_cast<double>(vocab_size + source_vocab_size) * static_cast<double>(n_embd) < most &&
          static_cast<double>(positions()) * static_cast<double>(n_embd) < most &&
          static_cast<double>(n_embd) * static_cast<double>(n_embd) * static_cast<double>(mlp_ratio) * layers < most &&
          static_cast<double>(n_embd) * static_cast<double>(n_head) * static_cast<double>(head_width()) * layers < most,
      "the model would have more than 10^12 parameters (n_layer {}, n_embd {}, n_head {}, d_head {}, vocab_size "
      "{}, context {}); make it smaller",
      n_layer, n_embd, n_head, head_width(), vocab_size, positions());
}

static const EnumNames<RopeScaling> kRopeScalings = {{"none", RopeScaling::none},
                                                     {"linear", RopeScaling::linear},
                                                     {"ntk", RopeScaling::ntk},
                                                     {"yarn", RopeScaling::yarn}};

static const EnumNames<Arch> kArchs = {
    {"decoder", Arch::decoder}, {"encoder", Arch::encoder}, {"encoder-decoder", Arch::encoder_decoder},
    {"rnn", Arch::rnn},         {"lstm", Arch::lstm},       {"gru", Arch::gru}};

std::string arch_name(const ModelConfig& c) {
  std::string name = "?";
  for (const auto& [word, value] : kArchs)
    if (value == c.arch) name = word;
  return c.recurrent() && c.has_source() ? name + " with a source" : name;
}

constexpr double kHuge = 1 << 30;

void ModelConfig::describe(Options& o) {
  describe_shape(o);
  describe_parts(o);
  describe_pairs(o);
}

void ModelConfig::describe_shape(Options& o) {
  o.group("Model");
  o.add("arch", &arch, kArchs,
        "the arrangement: one stack that looks back, one that looks both ways, a source and a target, or a recurrent "
        "state");
  o.add("n_layer", &n_layer, "blocks", {.min = 0, .max = 10000});
  o.add("n_head", &n_head, "heads", {.min = 1, .max = 65536});
  o.add("n_embd", &n_embd, "width of the model", {.min = 1, .max = kHuge});
  o.add("block_size", &block_size, "tokens in a training window", {.min = 1, .max = kHuge});
  o.add("context", &context, "positions the model can be run at (0: block_size)", {.min = 0, .max = kHuge});
  o.add("vocab_size", &vocab_size, "tokens in the vocabulary", {.min = 1, .max = kHuge});
  o.add("d_head", &d_head, "width of a head (0: n_embd / n_head)", {.min = 0, .max = kHuge});
  o.add("n_kv_head", &n_kv_head, "key and value heads (0: n_head)", {.min = 0, .max = 65536});
  o.add("mlp_ratio", &mlp_ratio, "width of the MLP over n_embd", {.min = 1, .max = 1024});
}

void ModelConfig::describe_parts(Options& o) {
  o.add("pos", &pos,
        {{"none", Position::none},
         {"learned", Position::learned},
         {"sinusoidal", Position::sinusoidal},
         {"rotary", Position::rotary},
         {"alibi", Position::alibi}},
        "how positions are told apart");
  o.add("norm", &norm,
        {{"pre", NormPlace::pre},
         {"post", NormPlace::post},
         {"none", NormPlace::none},
         {"parallel", NormPlace::parallel}},
        "place of the normalisation");
  o.add("norm_kind", &norm_kind, {{"layer", NormKind::layer}, {"rms", NormKind::rms}}, "LayerNorm or RMSNorm");
  o.add("mlp", &mlp,
        {{"none", MlpKind::none},
         {"gelu", MlpKind::gelu},
         {"gelu_tanh", MlpKind::gelu_tanh},
         {"relu", MlpKind::relu},
         {"swiglu", MlpKind::swiglu}},
        "the per-position network");
  o.add("mixer", &mixer, {{"attention", Mixer::attention}, {"average", Mixer::average}, {"none", Mixer::none}},
        "what mixes positions");
  o.add("mask", &mask, {{"causal", Mask::causal}, {"full", Mask::full}, {"window", Mask::window}},
        "which keys a query sees");
  o.add("window", &window, "keys a query sees with mask=window", {.min = 0, .max = kHuge});
  o.add("scale", &scale, "divide the scores by sqrt(d_head)");
  o.add("residual", &residual, "add each part to its input instead of replacing it");
  o.add("attn_proj", &attn_proj, "an output matrix after the heads");
  o.add("qkv_bias", &qkv_bias, "biases on queries, keys and values");
  o.add("bias", &bias, "biases elsewhere in a block and in LayerNorm");
  o.add("head_bias", &head_bias, "a bias on the logits (untied head)");
  o.add("tie_embeddings", &tie_embeddings, "one table for input and output");
  o.add("dropout", &dropout, "probability of dropping an activation", {.min = 0, .max = 1, .below_max = true});
  o.add("rope_theta", &rope_theta, "base of the rotary frequencies", {.min = 1});
  o.add("rope_scaling", &rope_scaling, kRopeScalings, "how rotary positions reach past the window trained at");
  o.add("rope_factor", &rope_factor, "how many times longer than that window", {.min = 1, .max = 1e6});
  o.add("rope_original", &rope_original, "that window (0: block_size)", {.min = 0, .max = kHuge});
  o.add("norm_eps", &norm_eps, "added to the variance", {.min = 0});
  o.add("init", &init, {{"pytorch", InitStyle::pytorch}, {"gpt2", InitStyle::gpt2}, {"xavier", InitStyle::xavier}},
        "initial values");
}

void ModelConfig::describe_pairs(Options& o) {
  o.group("Source and target");
  o.add("source_vocab_size", &source_vocab_size, "tokens of the source (0: there is none)", {.min = 0, .max = kHuge});
  o.add("n_encoder_layer", &n_encoder_layer, "blocks or layers that read the source (0: n_layer)",
        {.min = 0, .max = 10000});
  o.add("share_embeddings", &share_embeddings, "one table for source and target");
  o.add("embed_scale", &embed_scale, "tokens times sqrt(n_embd)");
  o.add("attend", &attend, {{"none", Attend::none}, {"dot", Attend::dot}, {"additive", Attend::additive}},
        "what a recurrent target reads of its source beside the last state");
}

// Names whose values are not the ones that say "nothing of it": a config that spells out what is so anyway is right.
static std::vector<std::string_view> said(std::initializer_list<std::pair<std::string_view, bool>> options) {
  std::vector<std::string_view> names;
  for (const auto& [name, says_something] : options)
    if (says_something) names.push_back(name);
  return names;
}

// What does nothing without a source, without recurrent layers, or where the token table is the head
static std::vector<Idle> idle_around(const ModelConfig& c) {
  std::vector<Idle> idle;
  const std::string arch = arch_name(c);
  if (!c.has_source() && c.arch != Arch::encoder_decoder)
    idle.push_back({said({{"n_encoder_layer", c.n_encoder_layer != 0}, {"share_embeddings", c.share_embeddings}}),
                    fmt::format("is of a source of its own, and this model (arch={}) has none", arch)});
  if (!c.recurrent() || !c.has_source())
    idle.push_back({said({{"attend", c.attend != Attend::none}}),
                    fmt::format("is of recurrent layers with a source, and this is arch={}", arch)});
  if (c.tie_embeddings)
    idle.push_back({said({{"head_bias", c.head_bias}}),
                    "is of a head of its own, and tie_embeddings makes the token table the head"});
  return idle;
}

static std::vector<std::string_view> rotary_options(const ModelConfig& c) {
  return said({{"rope_theta", true},
               {"rope_scaling", c.rope_scaling != RopeScaling::none},
               {"rope_factor", c.rope_factor != 1},
               {"rope_original", c.rope_original != 0}});
}

std::vector<Idle> idle_options(const ModelConfig& c) {
  std::vector<Idle> idle = idle_around(c);
  if (c.recurrent()) {
    const std::string why = fmt::format("is of models made of blocks, and arch={} has recurrent layers", arch_name(c));
    idle.push_back({{"n_head", "d_head", "n_kv_head", "mlp_ratio", "pos", "norm", "norm_kind", "norm_eps", "mlp",
                     "mixer", "mask", "window", "scale", "residual", "attn_proj", "qkv_bias", "bias"},
                    why});
    idle.push_back({rotary_options(c), why});
    idle.push_back({said({{"embed_scale", c.embed_scale}}), why});
    return idle;
  }
  if (c.arch == Arch::encoder && c.mask != Mask::full)
    idle.push_back({{"mask", "window"}, "is of models that look back, and arch=encoder sees all of its text"});
  if (c.mixer != Mixer::attention)
    idle.push_back({{"n_head", "d_head", "n_kv_head", "scale", "attn_proj", "qkv_bias", "mask"},
                    "is of attention, and mixer is another"});
  if (c.mask != Mask::window) idle.push_back({{"window"}, "is how many keys mask=window sees, and mask is another"});
  if (c.pos != Position::rotary) idle.push_back({rotary_options(c), "is of rotary positions, and pos is another"});
  if (c.mlp == MlpKind::none) idle.push_back({{"mlp_ratio"}, "is of the MLP, and mlp is none"});
  if (c.norm == NormPlace::none)
    idle.push_back({{"norm_kind", "norm_eps"}, "is of the normalisation, and norm is none"});
  return idle;
}

nlohmann::json to_json(const ModelConfig& c) {
  ModelConfig copy = c;
  Options o("config.json");
  copy.describe(o);
  nlohmann::json j = o.to_json();
  j["model_type"] = "bary";
  j["architectures"] = {c.has_source()            ? "BaryForConditionalGeneration"
                        : c.arch == Arch::encoder ? "BaryForMaskedLM"
                        : c.recurrent()           ? "BaryRecurrentForCausalLM"
                                                  : "BaryDecoderForCausalLM"};
  j["n_positions"] = c.positions();
  j["n_ctx"] = c.positions();
  j["torch_dtype"] = "float32";
  return j;
}

// Keys that the first files did not have
static bool added_later(const std::string& key) {
  for (const char* k : {"rope_scaling", "rope_factor", "rope_original", "arch", "source_vocab_size", "n_encoder_layer",
                        "share_embeddings", "embed_scale", "attend"})
    if (key == k) return true;
  return false;
}

ModelConfig model_config_from_json(const nlohmann::json& j, const std::string& what) {
  BARY_CHECK(j.is_object() && j.value("model_type", nlohmann::json()) == "bary",
             "{}: model_type is not \"bary\"; this file describes another kind of model", what);
  ModelConfig c;
  Options o(what);
  c.describe(o);
  nlohmann::json known = nlohmann::json::object();
  for (const std::string& name : o.names()) {
    if (!j.contains(name) && added_later(name)) continue;
    BARY_CHECK(j.contains(name), "{}: the key {} is missing; the file is incomplete, use a checkpoint written by bary",
               what, name);
    known[name] = j[name];
  }
  o.from_json(known, what);
  c.check();
  return c;
}

void Reading::describe(Options& o) {
  o.add("rope_scaling", &rope_scaling, kRopeScalings,
        "slow rotary positions down for a longer text (none: as the model has it)");
  o.add("rope_factor", &rope_factor, "how many times longer than the window trained at", {.min = 1, .max = 1e6});
}

ModelConfig read_as(const ModelConfig& trained, const Reading& r) {
  ModelConfig c = trained;
  BARY_CHECK(r.rope_scaling != RopeScaling::none || r.rope_factor == 1,
             "rope_factor {} does nothing without rope_scaling; set it to linear, ntk or yarn", r.rope_factor);
  const bool changed = r.block_size || r.rope_scaling != RopeScaling::none;
  if (changed && c.pos == Position::rotary && !c.rope_original) c.rope_original = c.block_size;
  if (r.rope_scaling != RopeScaling::none) c.rope_scaling = r.rope_scaling, c.rope_factor = r.rope_factor;
  if (r.block_size) {
    BARY_CHECK(!c.learned_positions() || r.block_size <= c.positions(),
               "block_size {}: the model learned {} positions; read no more, or train with a larger context",
               r.block_size, c.positions());
    c.context = c.learned_positions() ? c.positions() : std::max(c.context, r.block_size);
    c.block_size = r.block_size;
  }
  c.check();
  return c;
}

std::vector<std::string> preset_names() {
  return {"gpt2",  "gpt2-medium", "gpt2-large",        "gpt2-xl",       "chapter",
          "token", "average",     "average-positions", "average-added", "head-replacing",
          "head",  "heads",       "heads-mlp",         "block",         "two-blocks",
          "copy",  "annotated"};
}

static ModelConfig encoder_decoder(int64_t layers, int64_t heads, int64_t width) {
  ModelConfig c;
  c.arch = Arch::encoder_decoder, c.vocab_size = c.source_vocab_size = 11, c.block_size = 64;
  c.n_layer = layers, c.n_head = heads, c.n_embd = width;
  c.mlp = MlpKind::relu, c.pos = Position::sinusoidal, c.qkv_bias = c.embed_scale = true, c.init = InitStyle::xavier;
  return c;
}

static ModelConfig gpt2(int64_t layers, int64_t heads, int64_t width) {
  ModelConfig c;
  c.vocab_size = 50257, c.block_size = 1024, c.n_layer = layers, c.n_head = heads, c.n_embd = width;
  c.mlp = MlpKind::gelu_tanh, c.qkv_bias = true, c.tie_embeddings = true, c.head_bias = false, c.init = InitStyle::gpt2;
  return c;
}

ModelConfig preset(const std::string& name) {
  if (name == "gpt2") return gpt2(12, 12, 768);
  if (name == "gpt2-medium") return gpt2(24, 16, 1024);
  if (name == "gpt2-large") return gpt2(36, 20, 1280);
  if (name == "gpt2-xl") return gpt2(48, 25, 1600);
  if (name == "copy") return encoder_decoder(2, 4, 64);
  if (name == "annotated") {
    ModelConfig a = encoder_decoder(2, 8, 512);
    return a.dropout = 0.1, a;
  }
  ModelConfig c;  // the chapter's block: 477,696 parameters
  if (name == "chapter" || name == "block") return c;
  if (name == "two-blocks") return c.n_layer = 2, c;
  c.norm = NormPlace::none;  // the rungs below it, top down
  if (name == "heads-mlp") return c;
  c.mlp = MlpKind::none;
  if (name == "heads") return c;
  c.n_head = 1, c.attn_proj = false;
  if (name == "head") return c;
  if (name == "head-replacing") return c.residual = false, c;
  c.mixer = Mixer::average;
  if (name == "average-positions") return c.residual = false, c;
  c.pos = Position::none;
  if (name == "average-added") return c;
  if (name == "average") return c.residual = false, c;
  if (name == "token") return c.n_layer = 0, c;
  std::string known;
  for (const std::string& n : preset_names()) known += (known.empty() ? "" : ", ") + n;
  auto near = nearest(name, preset_names());
  fail("model {}: unknown{}; known are {}", quote(name), near ? "; did you mean " + *near + "?" : "", known);
}

}  // namespace bary
