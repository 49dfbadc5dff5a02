// SPDX-License-Identifier: Apache-2.0
// bary bench decode: tokens a second with a cache.
#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/bench/decode.h"
#include "bary/bench/step.h"
#include "bary/cli/named_model.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/target.h"
#include "bary/program/commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct DecodeRequest {
  ModelConfig model;
  int64_t tokens = 120, times = 50, threads = 1;
  bool json = false;
  Options options() {
    Options o("bench decode");
    o.add("tokens", &tokens, "tokens a run", {.min = 1, .max = 1 << 20});
    o.add("times", &times, "runs to time", {.min = 1, .max = 1e6});
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("json", &json, "print as JSON");
    model.describe(o);
    return o;
  }
};

int run_decode(std::span<const std::string> args, Io& io) {
  DecodeRequest r;
  const std::string name = parse_named_model(r, "bench decode", args, "chapter");
  set_threads(static_cast<int>(r.threads));
  LanguageModel model(r.model, 1);
  measure_decode(model, r.tokens, 1);  // packs the weights
  const DecodeFigures f = measure_decode(model, r.tokens, r.times);
  const double seconds = median(f.seconds_a_token), bytes = static_cast<double>(f.weight_bytes) / seconds / 1e9;
  const double stream = kernel::measure_stream(0.2);
  if (r.json) {
    io.print(dump_json({{"model", name},
                        {"parameters", model.parameters().count()},
                        {"tokens", r.tokens},
                        {"threads", threads()},
                        {"isa", kernel::active_isa()},
                        {"tokens_per_second", 1 / seconds},
                        {"weight_gb_s", bytes},
                        {"stream_gb_s", stream}}) +
             "\n");
    return kExitOk;
  }
  io.print(fmt::format(
      "{} tokens/s ({:.1f} us a token) on {} threads, {}: weights at {:.1f} GB/s, memory streams {:.1f}\n",
      grouped(static_cast<int64_t>(1 / seconds)), seconds * 1e6, threads(), kernel::active_isa(), bytes, stream));
  return kExitOk;
}

}  // namespace

Command bench_decode_command() {
  return {"bench decode",
          "time writing token by token",
          "[NAME] [--key value ...]",
          {{"bary bench decode", "the chapter's block on one thread"},
           {"bary bench decode gpt2 --threads 0 --times 1", "a model that is read from memory for every token"}},
          [] { return DecodeRequest().options().help(); },
          run_decode};
}

}  // namespace bary
