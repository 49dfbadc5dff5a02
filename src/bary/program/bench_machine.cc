// SPDX-License-Identifier: Apache-2.0
// bary bench machine: the limits that every other figure is a share of.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/bench/step.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/target.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct MachineRequest {
  int64_t threads = 0, times = 9;
  bool json = false;
  Options options() {
    Options o("bench machine");
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("times", &times, "how often each is measured", {.min = 1, .max = 1e6});
    o.add("json", &json, "print as JSON");
    return o;
  }
};

int run_machine(std::span<const std::string> args, Io& io) {
  MachineRequest r;
  BARY_CHECK(r.options().parse_args(args).empty(), "bench machine: takes options only; see --help");
  kernel::apply_isa_from_environment();
  set_threads(static_cast<int>(r.threads));
  std::vector<double> fma, tile, stream;
  for (int64_t i = 0; i < r.times; ++i) {  // in turn, so that a slow phase of the machine meets all
    fma.push_back(kernel::measure_fma_peak(0.1));
    tile.push_back(kernel::measure_tile_peak(0.1));
    stream.push_back(kernel::measure_stream(0.2));
  }
  if (r.json) {
    io.print(dump_json({{"threads", threads()},
                        {"isa", kernel::active_isa()},
                        {"fma_gflops", median(fma)},
                        {"tile_gflops", median(tile)},
                        {"stream_gb_s", median(stream)}}) +
             "\n");
    return kExitOk;
  }
  io.print(
      fmt::format("{} threads, {}\nmultiply-adds on registers   {:7.1f} GFLOP/s\nregister tile hot in cache   {:7.1f} "
                  "GFLOP/s  {} of it\nmemory, a = b + s c          {:7.1f} GB/s\n",
                  threads(), kernel::active_isa(), median(fma), median(tile), percent_text(median(tile) / median(fma)),
                  median(stream)));
  return kExitOk;
}

}  // namespace

Command bench_machine_command() {
  return {"bench machine",
          "measure this machine's limits",
          "[--key value ...]",
          {{"bary bench machine", "multiply-adds, the register tile, memory"},
           {"bary bench machine --threads 1 --json", "one core, for a program"}},
          [] { return MachineRequest().options().help(); },
          run_machine};
}

}  // namespace bary
