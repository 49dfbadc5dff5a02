// SPDX-License-Identifier: Apache-2.0
// bary fill: an encoder fills the gaps of a text.
#include "bary/generate/fill.h"

#include <fmt/format.h>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/base/quote.h"
#include "bary/cli/model_commands.h"
#include "bary/report/table.h"
#include "bary/train/checkpoint.h"

namespace bary {
namespace {

struct FillRequest {
  FillOptions fill;
  int64_t threads = 0;
  bool json = false;
  Options options() {
    Options o("fill");
    o.add("top_k", &fill.top_k, "proposals for each gap", {.min = 1, .max = 1 << 24});
    o.group("Running");
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("json", &json, "print proposals and text as JSON");
    return o;
  }
};

nlohmann::json to_json(const std::string& text, const Filled& filled) {
  nlohmann::json gaps = nlohmann::json::array();
  for (const Gap& gap : filled.gaps) {
    nlohmann::json proposals = nlohmann::json::array();
    for (const Proposal& p : gap.proposals)
      proposals.push_back({{"text", p.text}, {"id", p.id}, {"probability", p.probability}});
    gaps.push_back({{"position", gap.position}, {"proposals", proposals}});
  }
  return {{"text", text}, {"ids", filled.ids}, {"gaps", gaps}, {"filled", filled.text}};
}

std::string table_of(const Filled& filled) {
  Table table({{"gap", Align::right}, {"probability", Align::right}, {"token"}});
  for (size_t g = 0; g < filled.gaps.size(); ++g) {
    if (g) table.rule();
    for (const Proposal& p : filled.gaps[g].proposals)
      table.row({std::to_string(g + 1), fmt::format("{:.4f}", p.probability), quote(p.text)});
  }
  return table.text();
}

int run_fill(std::span<const std::string> args, Io& io) {
  FillRequest r;
  Options o = r.options();
  const auto rest = o.parse_args(args);
  BARY_CHECK(
      rest.size() == 2,
      "fill: a model and one text are asked for, {} came; write bary fill RUN \"to be or {} to be\", the text in "
      "quotes",
      rest.size(), kMaskToken);
  set_threads(static_cast<int>(r.threads));
  LoadedModel m = load_model(rest[0]);
  BARY_CHECK(m.tokenizer.has_value(), "fill: {} has no tokenizer.json, so it can read no text; train with a text",
             m.folder.string());
  const Filled filled = fill(*m.model, *m.tokenizer, rest[1], r.fill);
  if (r.json) {
    io.print(dump_json(to_json(rest[1], filled)) + "\n");
  } else {
    io.print(table_of(filled) + "\n" + replace_invalid_utf8(filled.text) + "\n");
  }
  return kExitOk;
}

}  // namespace

Command fill_command() {
  return {"fill",
          "let an encoder fill the gaps of a text",
          "RUN|CHECKPOINT \"TEXT WITH [MASK]\" [--key value ...]",
          {{"bary fill runs/gaps \"To be or [MASK] to be\"", "the five likeliest tokens, and the text with the first"},
           {"bary fill runs/gaps \"My [MASK], the [MASK] is dead\" --top_k 3", "two gaps, each by itself"},
           {"bary fill runs/gaps \"Good [MASK], sir\" --json", "for a program"}},
          [] { return FillRequest().options().help(); },
          run_fill};
}

}  // namespace bary
