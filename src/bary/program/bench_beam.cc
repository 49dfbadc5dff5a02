// SPDX-License-Identifier: Apache-2.0
// bary bench beam: sentences a second through beam search.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/bench/beam.h"
#include "bary/bench/step.h"
#include "bary/cli/named_model.h"
#include "bary/kernel/target.h"
#include "bary/program/bench_lines.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct BeamRequest {
  ModelConfig model = preset("copy");
  int64_t sources = 1000, beam = 4, tokens = 20, times = 5, threads = 0;
  bool lines = false, json = false;
  Options options() {
    Options o("bench beam");
    o.add("sources", &sources, "sources of 3 to 20 tokens", {.min = 1, .max = 1 << 20});
    o.add("beam", &beam, "beginnings that are followed", {.min = 1, .max = 65536});
    o.add("tokens", &tokens, "tokens of every target", {.min = 1, .max = 1 << 20});
    o.add("times", &times, "runs to time", {.min = 1, .max = 1e6});
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("lines", &lines, "answer \"step N\" on standard input with a line of times (bench/rivals)");
    o.add("json", &json, "print as JSON");
    model.describe(o);
    return o;
  }
};

int run_beam(std::span<const std::string> args, Io& io) {
  BeamRequest r;
  const std::string name = parse_named_model(r, "bench beam", args, "copy");
  set_threads(static_cast<int>(r.threads));
  BeamBench bench(r.model, r.sources, r.beam, r.tokens, 1);
  nlohmann::json about = {
      {"name", "bary"},       {"model", name},  {"isa", kernel::active_isa()}, {"threads", threads()},
      {"sources", r.sources}, {"beam", r.beam}, {"tokens", r.tokens},          {"parameters", bench.parameters()}};
  if (r.lines)
    return answer_steps(
        about, [&] { return bench.run_one(); }, io);
  bench.run_one();  // packs the weights
  std::vector<double> seconds;
  for (int64_t i = 0; i < r.times; ++i) seconds.push_back(bench.run_one());
  const double s = median(seconds), rate = static_cast<double>(r.sources) / s;
  if (r.json) {
    about["median_ms"] = s * 1e3, about["sources_per_second"] = rate;
    io.print(dump_json(about) + "\n");
    return kExitOk;
  }
  io.print(fmt::format("{} sources, beam {}, {} tokens each: {:.0f} ms, {} sources/s on {} threads, {}\n",
                       grouped(r.sources), r.beam, r.tokens, s * 1e3, short_count(rate), threads(),
                       kernel::active_isa()));
  return kExitOk;
}

}  // namespace

Command bench_beam_command() {
  return {"bench beam",
          "time beam search",
          "[NAME] [--key value ...]",
          {{"bary bench beam", "a thousand sources by the small encoder-decoder, beam 4"},
           {"bary bench beam annotated --beam 1 --threads 1", "another model, greedy"}},
          [] { return BeamRequest().options().help(); },
          run_beam};
}

}  // namespace bary
