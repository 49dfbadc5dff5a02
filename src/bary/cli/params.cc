// SPDX-License-Identifier: Apache-2.0
// bary params: the arithmetic of a model, before anything is allocated.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/model_commands.h"
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
  io.print(fmt::format("{}: C {} (width), V {} (vocabulary), P {} (positions), F {} (MLP width), {} heads of {}\n\n",
                       name, c.n_embd, grouped(c.vocab_size), c.positions(), c.mlp_width(), c.n_head, c.head_width()));
  io.print(table.text());
  const FlopCount f = count_flops(c, c.block_size);
  const double T = static_cast<double>(c.block_size);
  io.print(fmt::format("\nforward {} FLOP a token, training {}, over a window of {}\n", short_count(f.forward / T),
                       short_count(f.training / T), c.block_size));
  const GradientPlan plan = plan_gradient(c, Traversal::automatic, 64, c.block_size, 1);
  MemoryForecast m = forecast_memory(c, plan.at_once, plan.buffers);
  io.print(
      fmt::format("weights {}; training, one sequence a batch: about {} on {} threads (optimiser {}, gradients {}, "
                  "packed weights {}, activations {})\n",
                  bytes_text(static_cast<int64_t>(m.weights)), bytes_text(static_cast<int64_t>(m.total())), threads(),
                  bytes_text(static_cast<int64_t>(m.optimizer)), bytes_text(static_cast<int64_t>(m.gradients)),
                  bytes_text(static_cast<int64_t>(m.packed)), bytes_text(static_cast<int64_t>(m.activations))));
}

int run_params(std::span<const std::string> args, Io& io) {
  ParamsRequest r;
  std::string name = "chapter";
  {  // the name first, so that the flags change its settings
    ParamsRequest probe;
    auto rest = probe.options().parse_args(args);
    BARY_CHECK(rest.size() <= 1, "params: one model is counted, {} came; name a preset or the folder of a run",
               rest.size());
    if (!rest.empty()) {
      name = rest[0];
      std::error_code ignored;
      r.model = std::filesystem::is_directory(name, ignored) ? checkpoint_config(name) : preset(name);
    }
  }
  Options o = r.options();
  o.parse_args(args);
  if (!r.json) return print_table(r.model, name, io), kExitOk;
  const ParameterCount n = count_parameters(r.model);
  nlohmann::json parts = nlohmann::json::array();
  for (const CountRow& row : n.rows)
    parts.push_back({{"part", row.part},
                     {"formula", row.formula},
                     {"count", row.count},
                     {"per_block", !row.group.empty()},
                     {"group", row.group},
                     {"times", row.times}});
  const FlopCount f = count_flops(r.model, r.model.block_size);
  io.print(dump_json({{"model", name},
                      {"parameters", n.total},
                      {"block", n.block},
                      {"embeddings", n.embeddings},
                      {"parts", parts},
                      {"forward_flop_per_window", f.forward},
                      {"training_flop_per_window", f.training}}) +
           "\n");
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
