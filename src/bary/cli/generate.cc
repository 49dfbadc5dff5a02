// SPDX-License-Identifier: Apache-2.0
// bary generate: a model goes on from a prompt.
#include "bary/generate/generate.h"

#include <fmt/format.h>

#include <utility>

#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/parallel.h"
#include "bary/cli/checkpoint_kind.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/model_commands.h"
#include "bary/report/format.h"

namespace bary {
namespace {

struct GenerateRequest {
  GenerateOptions generate;
  Reading reading;
  std::string prompt = "\n", prompt_file, stop;
  int64_t threads = 0, samples = 1;
  bool json = false, quiet = false;
  Options options() {
    Options o("generate");
    SamplerOptions& s = generate.sampler;
    o.add("prompt", &prompt, "text to go on from");
    o.add("prompt_file", &prompt_file, "one prompt a line, - for standard input; instead of --prompt",
          {.value_name = "FILE"});
    o.add("max_new_tokens", &generate.max_new_tokens, "tokens to write", {.min = 0, .max = 1e9});
    o.add("num_samples", &samples, "texts for each prompt", {.min = 1, .max = 100000});
    o.add("stop", &stop, "end before this text");
    o.add("seed", &generate.seed, "of the draws");
    o.group("Sampling");
    o.add("temperature", &s.temperature, "0: always the most likely token");
    o.add("top_k", &s.top_k, "draw among the k most likely (0: all)");
    o.add("top_p", &s.top_p, "draw among the most likely that make up p");
    o.add("min_p", &s.min_p, "leave out what is less likely than this share of the most likely");
    o.add("repetition_penalty", &s.repetition_penalty, "above 1: what was said becomes less likely");
    o.group("Running");
    o.add("cache", &generate.cache, "keep keys and values of earlier tokens (never changes the text)");
    o.add("prefill_chunk", &generate.prefill_chunk, "prompt tokens a pass (0: all; never changes the text)",
          {.min = 0});
    reading.describe(o);
    o.add("threads", &threads, "cores to use (0: all)", {.min = 0, .max = 1024});
    o.add("quiet", &quiet, "no summary at the end");
    o.add("json", &json, "print texts and counts as JSON");
    return o;
  }
};

std::vector<std::string> prompts_of(const GenerateRequest& r, BlankLines blank, const Io& io) {
  std::vector<std::string> prompts{r.prompt};
  if (!r.prompt_file.empty()) prompts = read_lines(r.prompt_file, io, blank);
  BARY_CHECK(!prompts.empty(), "generate: {} holds no prompt; write one a line", r.prompt_file);
  std::vector<std::string> all;
  for (const std::string& p : prompts) all.insert(all.end(), static_cast<size_t>(r.samples), p);
  return all;
}

const char* finish_name(Finish f) {
  switch (f) {
    case Finish::length:
      return "length";
    case Finish::stop:
      return "stop";
    case Finish::context:
      return "context";
    case Finish::cancelled:
      return "cancelled";
  }
  return "";
}

void print_json(const std::vector<std::string>& prompts, const std::vector<Generated>& out, Io& io) {
  nlohmann::json all = nlohmann::json::array();
  for (size_t i = 0; i < out.size(); ++i)
    all.push_back({{"prompt", prompts[i]},
                   {"text", out[i].text},
                   {"ids", out[i].ids},
                   {"finish", finish_name(out[i].finish)},
                   {"prompt_tokens", out[i].prompt_tokens},
                   {"prompt_seconds", out[i].prompt_seconds},
                   {"generation_seconds", out[i].generation_seconds}});
  io.print(dump_json(all) + "\n");
}

void summarise(const std::vector<Generated>& out, Io& io) {
  int64_t prompt = 0, made = 0;
  double prompt_seconds = 0, seconds = 0;
  bool context = false;
  for (const Generated& g : out) {
    prompt += g.prompt_tokens, made += static_cast<int64_t>(g.ids.size());
    prompt_seconds = std::max(prompt_seconds, g.prompt_seconds), seconds = std::max(seconds, g.generation_seconds);
    context = context || g.finish == Finish::context;
  }
  if (context)
    io.note("note: the model's learned positions ended here; train with a larger --context for longer texts");
  auto rate = [](int64_t n, double s) { return s > 0 ? short_count(static_cast<double>(n) / s) : std::string("-"); };
  io.note(fmt::format("prompt {} tokens, {} tok/s; generated {} tokens, {} tok/s", prompt, rate(prompt, prompt_seconds),
                      made, rate(made, seconds)));
}

int run_generate(std::span<const std::string> args, Io& io) {
  GenerateRequest r;
  Options o = r.options();
  auto rest = o.parse_args(args);
  BARY_CHECK(rest.size() == 1, "generate: one model writes, {} came; name the folder of a run or checkpoint",
             rest.size());
  if (r.generate.sampler.temperature == 0)
    o.refuse({"top_k", "top_p", "min_p", "seed", "num_samples"}, "is of drawing, and --temperature 0 draws nothing");
  if (!r.generate.cache) o.refuse({"prefill_chunk"}, "cuts what goes into the cache, and there is none");
  if (r.json) o.refuse({"quiet"}, "leaves the summary out, and --json has none");
  if (o.asked("prompt_file")) o.refuse({"prompt"}, "is one prompt, and --prompt_file has others");
  check_sampler(r.generate.sampler);
  set_threads(static_cast<int>(r.threads));
  LoadedModel m = load_text_model(rest[0], r.reading);
  BARY_CHECK(m.tokenizer.has_value(),
             "generate: {} has no tokenizer.json, so its tokens cannot be turned into text; train with a text "
             "or a tokenizer",
             m.folder.string());
  r.generate.stop_token = m.tokenizer->start_token();
  const auto prompts = prompts_of(r, r.generate.stop_token ? BlankLines::allowed : BlankLines::refused, io);
  if (!r.stop.empty()) r.generate.stop = {r.stop};
  InterruptGuard guard;
  r.generate.cancelled = [] { return interrupted(); };
  const bool stream = prompts.size() == 1 && !r.json;
  bool begun = false;  // a prompt that is refused is not printed
  auto begin = [&] {
    if (!std::exchange(begun, true)) io.print(prompts[0]);
  };
  if (stream) {
    r.generate.on_text = [&](size_t, const std::string& text) {
      begin();
      io.print(text);
      io.flush();
    };
  }
  auto out = generate(*m.model, *m.tokenizer, prompts, r.generate);
  if (r.json) {
    print_json(prompts, out, io);
  } else if (stream) {
    begin();
    io.print("\n");
  } else {
    for (size_t i = 0; i < out.size(); ++i)
      io.print(fmt::format("{}{}\n{}\n", prompts[i], out[i].text, i + 1 < out.size() ? "---" : ""));
  }
  if (!r.quiet && !r.json) summarise(out, io);
  for (const Generated& g : out)
    if (g.finish == Finish::cancelled) return kExitInterrupted;
  return kExitOk;
}

}  // namespace

Command generate_command() {
  return {"generate",
          "let a model write",
          "RUN|CHECKPOINT [--prompt TEXT] [--key value ...]",
          {{"bary generate runs/book --prompt \"Once upon\"", "what the model goes on with"},
           {"bary generate runs/book --temperature 0 --max_new_tokens 50", "the most likely text"},
           {"bary generate runs/book --top_p 0.9 --num_samples 3 --seed 7", "three draws"},
           {"cat prompts.txt | bary generate runs/book --prompt_file - --json", "many prompts, for a program"}},
          [] { return GenerateRequest().options().help(); },
          run_generate};
}

}  // namespace bary
