// SPDX-License-Identifier: Apache-2.0
// bary bench kernels: each as a share of its limit, on one thread.
#include <fmt/format.h>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/bench/kernels.h"
#include "bary/kernel/target.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"
#include "bary/report/table.h"

namespace bary {
namespace {

struct KernelsRequest {
  double seconds = 0.2;
  bool json = false;
  Options options() {
    Options o("bench kernels");
    o.add("seconds", &seconds, "of each kernel", {.min = 0.001, .max = 1000});
    o.add("json", &json, "print as JSON");
    return o;
  }
};

int run_kernels(std::span<const std::string> args, Io& io) {
  KernelsRequest r;
  BARY_CHECK(r.options().parse_args(args).empty(), "bench kernels: takes options only; see --help");
  kernel::apply_isa_from_environment();
  set_threads(1);
  const auto figures = measure_kernels(r.seconds);
  auto unit = [](const KernelFigure& f) {
    return f.limit == Limit::tile ? "GFLOP/s" : f.limit == Limit::memory ? "GB/s" : "elements/ns";
  };
  if (r.json) {
    nlohmann::json all = nlohmann::json::array();
    for (const KernelFigure& f : figures) {
      nlohmann::json one = {{"kernel", f.name}, {"shape", f.shape}, {"figure", f.figure}, {"unit", unit(f)}};
      if (f.most > 0) one["limit"] = f.most, one["share"] = f.figure / f.most;
      all.push_back(std::move(one));
    }
    io.print(dump_json({{"isa", kernel::active_isa()}, {"kernels", all}}) + "\n");
    return kExitOk;
  }
  Table table({{"kernel"}, {"shape"}, {"figure", Align::right}, {"unit"}, {"of its limit", Align::right}});
  for (const KernelFigure& f : figures)
    table.row(
        {f.name, f.shape, fmt::format("{:.1f}", f.figure), unit(f), f.most > 0 ? percent_text(f.figure / f.most) : ""});
  io.print(fmt::format("one thread, {}; limits are the register tile and memory, measured beside each\n\n{}",
                       kernel::active_isa(), table.text()));
  return kExitOk;
}

}  // namespace

Command bench_kernels_command() {
  return {"bench kernels",
          "time each kernel beside its limit",
          "[--key value ...]",
          {{"bary bench kernels", "products, activations, norms, the optimiser"},
           {"bary bench kernels --json", "for a program"}},
          [] { return KernelsRequest().options().help(); },
          run_kernels};
}

}  // namespace bary
