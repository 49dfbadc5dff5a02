// SPDX-License-Identifier: Apache-2.0
// bary params: the arithmetic of a model, before anything is allocated.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/named_model.h"
#include "bary/model/count.h"
#include "bary/report/format.h"
#include "bary/report/table.h"
#include "bary/train/checkpoint.h"
#include "bary/train/gradient.h"

namespace bary {
namespace {

struct ParamsRequest {
  ModelConfig model;
  bool json = false;
  Options options() {
    Options o("params");
    model.describe(o);
    o.group("Output");
    o.add("json", &json, "print as JSON");
    return o;
  }
};

MemoryForecast training_memory(const ModelConfig& c) {
  const GradientPlan plan = plan_gradient(c, Traversal::automatic, 64, c.block_size, 1);
  return forecast_memory(c, plan.at_once, plan.buffers);
}

// The letters of the formulas
std::string legend(const ModelConfig& c, const std::string& name) {
  std::string text =
      fmt::format("{}: C {} (width), V {} (vocabulary), P {} (positions), F {} (MLP width), H {} heads of D {}", name,
                  c.n_embd, grouped(c.vocab_size), c.positions(), c.mlp_width(), c.n_head, c.head_width());
  if (c.heads_kv() != c.n_head) text += fmt::format(", G {} of them with keys and values", c.heads_kv());
  if (c.has_source()) text += fmt::format(", S {} (the source's vocabulary)", grouped(c.source_vocab_size));
  return text;
}

void print_table(const ModelConfig& c, const std::string& name, Io& io) {
  const ParameterCount n = count_parameters(c);
  Table table({{"part", Align::left}, {"formula", Align::left}, {"numbers", Align::right}, {"of all", Align::right}});
  auto add = [&](const std::string& part, const std::string& formula, int64_t count) {
    table.row({part, formula, grouped(count), percent_text(static_cast<double>(count) / static_cast<double>(n.total))});
  };
  int64_t each = 0;  // of the group under way
  for (size_t i = 0; i < n.rows.size(); ++i) {
    const CountRow& row = n.rows[i];
    if (row.group.empty()) {
      add(row.part, row.formula, row.count);
      continue;
    }
    table.row({"  each: " + row.part, row.formula, grouped(row.count), ""});
    each += row.count;
    if (i + 1 < n.rows.size() && n.rows[i + 1].group == row.group) continue;
    add(fmt::format("{} {}", row.times, row.group), fmt::format("{} x {}", row.times, grouped(each)), each * row.times);
    each = 0;
  }
  table.rule();
  table.row({"total", c.tie_embeddings ? "head tied to the token embedding" : "", grouped(n.total), "100.0%"});
  io.print(legend(c, name) + "\n\n");
  io.print(table.text());
  const FlopCount f = count_flops(c, c.block_size);
  const double T = static_cast<double>(c.block_size);
  io.print(fmt::format("\nforward {} FLOP a token, training {}, over a window of {}\n", short_count(f.forward / T),
                       short_count(f.training / T), c.block_size));
  const MemoryForecast m = training_memory(c);
  io.print(
      fmt::format("weights {}; training, one sequence a batch: about {} on {} threads (optimiser {}, gradients {}, "
                  "packed weights {}, activations {})\n",
                  bytes_text(static_cast<int64_t>(m.weights)), bytes_text(static_cast<int64_t>(m.total())), threads(),
                  bytes_text(static_cast<int64_t>(m.optimizer)), bytes_text(static_cast<int64_t>(m.gradients)),
                  bytes_text(static_cast<int64_t>(m.packed)), bytes_text(static_cast<int64_t>(m.activations))));
}

nlohmann::json to_json(const MemoryForecast& m) {
  auto bytes = [](double value) { return static_cast<int64_t>(value); };
  return {{"weights", bytes(m.weights)}, {"optimizer", bytes(m.optimizer)},     {"gradients", bytes(m.gradients)},
          {"packed", bytes(m.packed)},   {"activations", bytes(m.activations)}, {"training", bytes(m.total())},
          {"threads", threads()}};
}

nlohmann::json to_json(const ModelConfig& c, const std::string& name) {
  const ParameterCount n = count_parameters(c);
  nlohmann::json parts = nlohmann::json::array();
  for (const CountRow& row : n.rows)
    parts.push_back({{"part", row.part},
                     {"formula", row.formula},
                     {"count", row.count},
                     {"per_block", !row.group.empty()},
                     {"group", row.group},
                     {"times", row.times}});
  const FlopCount f = count_flops(c, c.block_size);
  return {{"model", name},
          {"width", c.n_embd},
          {"vocab_size", c.vocab_size},
          {"positions", c.positions()},
          {"mlp_width", c.mlp_width()},
          {"source_vocab_size", c.source_vocab_size},
          {"heads", c.n_head},
          {"kv_heads", c.heads_kv()},
          {"head_width", c.head_width()},
          {"window", c.block_size},
          {"tie_embeddings", c.tie_embeddings},
          {"parameters", n.total},
          {"block", n.block},
          {"embeddings", n.embeddings},
          {"parts", parts},
          {"forward_flop_per_window", f.forward},
          {"training_flop_per_window", f.training},
          {"memory", to_json(training_memory(c))}};
}

ModelConfig run_or_preset(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::is_directory(name, ignored) ? checkpoint_config(name) : preset(name);
}

int run_params(std::span<const std::string> args, Io& io) {
  ParamsRequest r;
  const std::string name = parse_named_model(r, "params", args, "chapter", run_or_preset);
  if (r.json)
    io.print(dump_json(to_json(r.model, name)) + "\n");
  else
    print_table(r.model, name, io);
  return kExitOk;
}

}  // namespace

Command params_command() {
  return {"params",
          "count a model's parameters, operations and memory",
          "[NAME|RUN] [--key value ...]",
          {{"bary params gpt2", "the chapter's table: 124,439,808"},
           {"bary params chapter --n_layer 2", "a variant before training it"},
           {"bary params runs/book --json", "of a trained model"}},
          [] { return ParamsRequest().options().help(); },
          run_params};
}

}  // namespace bary
