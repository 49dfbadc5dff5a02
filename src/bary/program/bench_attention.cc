// SPDX-License-Identifier: Apache-2.0
// bary bench attention: one sequence's attention, forward and backward, and the memory it takes.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/bench/attention.h"
#include "bary/bench/step.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/target.h"
#include "bary/program/bench_lines.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct AttentionRequest {
  int64_t heads = 8, width = 64, length = 4096, times = 5, threads = 0;
  AttentionPath path = AttentionPath::tiled;
  bool lines = false, json = false;
  Options options() {
    Options o("bench attention");
    o.add("length", &length, "positions", {.min = 1, .max = 1 << 20});
    o.add("heads", &heads, "heads", {.min = 1, .max = 1024});
    o.add("width", &width, "channels of a head", {.min = 1, .max = 4096});
    o.add("path", &path, {{"tiled", AttentionPath::tiled}, {"stored", AttentionPath::stored}},
          "tiled, as models run it, or storing the matrix of every head");
    o.add("times", &times, "runs to time", {.min = 1, .max = 1e6});
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("lines", &lines, "answer \"step N\" on standard input with a line of times (bench/rivals)");
    o.add("json", &json, "print as JSON");
    return o;
  }
};

int run_attention(std::span<const std::string> args, Io& io) {
  AttentionRequest r;
  BARY_CHECK(r.options().parse_args(args).empty(), "bench attention: takes options only; see --help");
  kernel::apply_isa_from_environment();
  set_threads(static_cast<int>(r.threads));
  AttentionBench bench(r.heads, r.width, r.length, r.path);
  if (r.lines) {
    const nlohmann::json about = {{"name", r.path == AttentionPath::tiled ? "bary" : "bary, stored matrix"},
                                  {"isa", kernel::active_isa()},
                                  {"threads", threads()},
                                  {"length", r.length}};
    return answer_steps(
        about, [&] { return bench.run_one(); }, io);
  }
  bench.run_one();
  const double tile = kernel::measure_tile_peak(0.05);
  std::vector<double> ms;
  for (int64_t i = 0; i < r.times; ++i) ms.push_back(bench.run_one() * 1e3);
  const double rate = bench.flops() / median(ms) / 1e6;
  const double extra = static_cast<double>(bench.extra_bytes()) / 1e6;
  if (r.json) {
    io.print(dump_json({{"length", r.length},
                        {"heads", r.heads},
                        {"width", r.width},
                        {"path", r.path == AttentionPath::tiled ? "tiled" : "stored"},
                        {"isa", kernel::active_isa()},
                        {"threads", threads()},
                        {"median_ms", median(ms)},
                        {"gflops", rate},
                        {"share_of_tile", rate / tile},
                        {"extra_mb", extra}}) +
             "\n");
    return kExitOk;
  }
  io.print(
      fmt::format("attention of {} positions, {} heads of {}, forward and backward, {} threads, {}: median {:.1f} ms, "
                  "{:.0f} GFLOP/s ({} of the register tile)\n{:.1f} MB beside inputs, outputs and gradients\n",
                  grouped(r.length), r.heads, r.width, threads(), kernel::active_isa(), median(ms), rate,
                  percent_text(rate / tile), extra));
  return kExitOk;
}

}  // namespace

Command bench_attention_command() {
  return {"bench attention",
          "time attention alone, and count its memory",
          "[--key value ...]",
          {{"bary bench attention", "4,096 positions, 8 heads of 64"},
           {"bary bench attention --length 65536 --times 1", "a long text, without its 16 GiB of matrix a head"}},
          [] { return AttentionRequest().options().help(); },
          run_attention};
}

}  // namespace bary
