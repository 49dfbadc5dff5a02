// SPDX-License-Identifier: Apache-2.0
// The promise, written down: what short fixed runs end with, checked on every machine that runs the tests and under
// every instruction set it has. A hash that differs means that some kernel, some random stream or the order of some sum
// has changed: then every result of every earlier run changes too. If that is meant, the test prints the new line.
#include "bary/base/sha256.h"
#include "bary/generate/generate.h"
#include "bary/kernel/target.h"
#include "bary/train/adamw.h"
#include "bary/train/evaluate.h"
#include "bary/train/gradient.h"
#include "small_run.h"

namespace bary::same_bits {
namespace {

struct FixedRun {
  friend void PrintTo(const FixedRun& r, std::ostream* out) { *out << r.name; }
  std::string name;
  ModelConfig model;
  AdamWOptions adamw;
  Schedule schedule{ScheduleKind::constant, 1e-3, 1e-4, 0, 6, 0.2};
  int64_t sequences = 4, steps = 6;
  // after the last step: SHA-256 of model.safetensors, bits of the loss on held-out tokens, SHA-256 of generated ids
  std::string weights, loss, ids;
};

ModelConfig tiny() {
  ModelConfig c;
  c.vocab_size = 96, c.block_size = 16, c.n_layer = 2, c.n_embd = 32;
  return c;
}

std::vector<FixedRun> runs() {
  std::vector<FixedRun> all;
  auto add = [&](const std::string& name, const auto& change, std::string weights, std::string loss, std::string ids) {
    FixedRun r;
    r.name = name, r.model = tiny();
    change(r);
    r.weights = std::move(weights), r.loss = std::move(loss), r.ids = std::move(ids);
    all.push_back(r);
  };
  add(
      "learned_gelu_layer", [](FixedRun&) {}, "8d1129cf4bdf34b3e69afe05f33c9685095bdeb5a109432759dfdcd4af264a99",
      "407287d598e43289", "193ead6e86337db1");
  add(
      "rotary_swiglu_rms_window_dropout_parallel",
      [](FixedRun& r) {
        ModelConfig& m = r.model;
        m.pos = Position::rotary, m.mlp = MlpKind::swiglu, m.norm_kind = NormKind::rms, m.norm = NormPlace::parallel;
        m.mask = Mask::window, m.window = 5, m.n_kv_head = 2, m.dropout = 0.1;
        r.schedule.kind = ScheduleKind::cosine, r.schedule.warmup_iters = 2;
      },
      "6b8eafbd7e73ae8c4578514afbbef1db177a2564d8ff6f6833f8b0af7f752dee", "4072661e140754e1", "ce6d99903fa47491");
  add(
      "alibi_gelu_tanh_post_gpt2_tied",
      [](FixedRun& r) {
        ModelConfig& m = r.model;
        m.pos = Position::alibi, m.mlp = MlpKind::gelu_tanh, m.norm = NormPlace::post, m.init = InitStyle::gpt2;
        m.tie_embeddings = true, m.qkv_bias = true, m.head_bias = false, m.scale = false;
        r.adamw.decay = DecayGroup::matrices, r.adamw.weight_decay = 0.1, r.adamw.grad_clip = 0.5;
        r.schedule.kind = ScheduleKind::wsd, r.schedule.decay_frac = 0.5;
      },
      "42308c7692a67d50a62c18018aeb302a1e23bfc74c55acfe5a8037d7e3f842f2", "4071df522741eee7", "40ac4db6208ea80f");
  add(
      "sinusoidal_relu_average_no_norm",
      [](FixedRun& r) {
        ModelConfig& m = r.model;
        m.pos = Position::sinusoidal, m.mlp = MlpKind::relu, m.mixer = Mixer::average, m.norm = NormPlace::none,
        m.dropout = 0.25;
        r.schedule.kind = ScheduleKind::inv_sqrt, r.schedule.warmup_iters = 2;
      },
      "6eee05ad3ea698741910a17bca815ecd9204cfa0d476e5c3fbf5e808367608a2", "4076743e7d192d6d", "1e9f34eb26ba7428");
  add(
      "odd_widths",
      [](FixedRun& r) {  // nothing is a multiple of a vector
        ModelConfig& m = r.model;
        m.vocab_size = 67, m.n_embd = 21, m.n_head = 3, m.d_head = 5, m.block_size = 19, m.mlp_ratio = 3;
        r.schedule.kind = ScheduleKind::linear;
      },
      "2d3b00b3c504ae28e83dec45ea6c9b8ee1ca8def5bcfb3716c4328542bfe9c00", "4074549c585c4cec", "34b6ee646fbf12a5");
  add(
      "two_blocks_of_keys",
      [](FixedRun& r) {  // the streaming path of attention, forward and backward
        ModelConfig& m = r.model;
        m.block_size = 272, m.n_layer = 1, m.n_embd = 16, m.n_head = 2, m.dropout = 0.1, m.pos = Position::rotary;
        r.sequences = 2, r.steps = 2;
      },
      "df479ded2a42d33699be6a4b976ef8365aaa6cd9a0d8d54985aae2ea1d620664", "40b3fd68667d0a59", "ce46ee8a10d4872f");
  return all;
}

struct Outcome {
  std::string weights, loss, ids;
};

Outcome outcome_of(const FixedRun& r) {
  const int64_t V = r.model.vocab_size;
  const std::vector<int32_t> tokens = made_up_tokens(4000, V);
  const TokenSplit split = split_tokens(tokens, 0.2);
  LanguageModel model(r.model, 1337);
  Windows windows(split.train, r.model.block_size);
  GradientSum gradient(model);
  AdamW adamw(model.parameters(), r.adamw);
  for (int64_t it = 0; it < r.steps; ++it) {
    Pass pass;
    pass.training = true, pass.seed = 1337, pass.step = static_cast<uint64_t>(it);
    auto sum = gradient.compute(r.sequences, r.model.block_size,
                                window_losses(model, r.model.block_size,
                                              [&](int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
                                                windows.window(1337, Purpose::batch, pass.step,
                                                               static_cast<uint64_t>(s), in, out);
                                              }),
                                pass);
    EXPECT_TRUE(adamw.step(gradient.values(), sum.tokens, learning_rate(r.schedule, it)).finite);
  }
  Outcome o;
  o.weights = weights_hash(model);
  o.loss = bits(evaluate_some(model, split.val, {}, 4, 42).loss_sum);
  SamplerOptions sampler;
  sampler.temperature = 0.9, sampler.top_p = 0.95;
  std::string ids;
  std::vector<int32_t> text{1, 2, 3};
  KvCache cache = model.make_cache(1, 16);
  std::vector<float> logits = next_logits(model, text, &cache, 2);
  for (uint64_t n = 0; n < 12; ++n) {
    RandomStream random(7, Purpose::sample, n, 0);
    text.push_back(sample_token(logits, V, text, sampler, random));
    ids += std::to_string(text.back()) + " ";
    logits = next_logits(model, std::span(text).last(1), &cache, 0);
  }
  o.ids = sha256_hex(ids).substr(0, 16);
  return o;
}

class CommittedHash : public testing::TestWithParam<FixedRun> {};

TEST_P(CommittedHash, IsTheSameUnderEveryInstructionSet) {
  const FixedRun& r = GetParam();
  const std::string before = kernel::active_isa();
  for (const std::string& isa : kernel::available_isas()) {
    kernel::force_isa(isa);
    const Outcome o = outcome_of(r);
    EXPECT_EQ(o.weights, r.weights) << isa << ", " << r.name << ": weights";
    EXPECT_EQ(o.loss, r.loss) << isa << ", " << r.name << ": held-out loss";
    EXPECT_EQ(o.ids, r.ids) << isa << ", " << r.name << ": generated ids";
    std::printf("  %s %s %s %s %s\n", r.name.c_str(), isa.c_str(), o.weights.c_str(), o.loss.c_str(), o.ids.c_str());
  }
  kernel::force_isa(before);
}

INSTANTIATE_TEST_SUITE_P(Every, CommittedHash, testing::ValuesIn(runs()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace bary::same_bits
