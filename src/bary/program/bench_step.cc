// SPDX-License-Identifier: Apache-2.0
// bary bench: what a training step takes here, as a share of what this machine can do.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/bench/step.h"
#include "bary/cli/command.h"
#include "bary/cli/named_model.h"
#include "bary/kernel/target.h"
#include "bary/program/bench_lines.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct BenchRequest {
  ModelConfig model;
  int64_t batch_size = 64, steps = 30, threads = 0;
  uint64_t seed = 1;
  Traversal traversal = Traversal::automatic;
  bool lines = false, json = false;
  Options options() {
    Options o("bench step");
    o.add("batch_size", &batch_size, "sequences a step", {.min = 1, .max = 1 << 20});
    o.add("steps", &steps, "steps to time", {.min = 1, .max = 1e9});
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("seed", &seed, "of the made-up tokens");
    o.add("traversal", &traversal,
          {{"auto", Traversal::automatic},
           {"depth_first", Traversal::depth_first},
           {"layer_by_layer", Traversal::layer_by_layer}},
          "as in bary train");
    o.add("lines", &lines, "answer \"step N\" on standard input with a line of times (bench/rivals)");
    o.add("json", &json, "print as JSON");
    model.describe(o);
    return o;
  }
};

nlohmann::json about(const BenchRequest& r, const std::string& name, const StepBench& b) {
  return {{"name", "bary"},
          {"model", name},
          {"isa", kernel::active_isa()},
          {"threads", threads()},
          {"batch_size", r.batch_size},
          {"block_size", r.model.block_size},
          {"parameters", b.parameters()},
          {"gflop_per_step", b.flops() / 1e9}};
}

int run_bench(std::span<const std::string> args, Io& io) {
  BenchRequest r;
  const std::string name = parse_named_model(r, "bench step", args, "chapter");
  set_threads(static_cast<int>(r.threads));
  StepBench bench(r.model, r.batch_size, r.seed, r.traversal);
  if (r.lines)
    return answer_steps(
        about(r, name, bench), [&] { return bench.run_one(); }, io);
  StepFigures f = measure_steps(bench, r.steps, 3);
  const double ms = median(f.milliseconds);
  if (r.json) {
    nlohmann::json j = about(r, name, bench);
    j["median_ms"] = ms, j["quartiles_ms"] = {quantile(f.milliseconds, 0.25), quantile(f.milliseconds, 0.75)};
    j["share_of_tile"] = median(f.share_of_tile), j["share_of_fma"] = median(f.share_of_fma);
    j["tile_gflops"] = f.tile_gflops, j["fma_gflops"] = f.fma_gflops;
    io.print(dump_json(j) + "\n");
    return kExitOk;
  }
  io.print(fmt::format(
      "one step of {} parameters, {} x {} tokens, {} threads, {}: median {:.1f} ms (quartiles {:.1f} to {:.1f}), "
      "{:.1f} "
      "GFLOP, {:.0f} GFLOP/s\n",
      grouped(bench.parameters()), r.batch_size, r.model.block_size, threads(), kernel::active_isa(), ms,
      quantile(f.milliseconds, 0.25), quantile(f.milliseconds, 0.75), bench.flops() / 1e9, bench.flops() / ms / 1e6));
  io.print(fmt::format(
      "{} of the register tile hot in cache ({:.0f} GFLOP/s), {} of the multiply-add peak ({:.0f} GFLOP/s)\n",
      percent_text(median(f.share_of_tile)), f.tile_gflops, percent_text(median(f.share_of_fma)), f.fma_gflops));
  return kExitOk;
}

}  // namespace

Command bench_step_command() {
  return {"bench step",
          "time a training step against this machine's peak",
          "[NAME] [--key value ...]",
          {{"bary bench step", "the chapter's block, 64 x 128 tokens"},
           {"bary bench step two-blocks --threads 1 --json", "another model, for a program"}},
          [] { return BenchRequest().options().help(); },
          run_bench};
}

}  // namespace bary
