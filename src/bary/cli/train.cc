// SPDX-License-Identifier: Apache-2.0
// bary train: text in, a trained model out.
#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "bary/base/clock.h"
#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/train_checks.h"
#include "bary/cli/train_start.h"
#include "bary/cli/translate_text.h"
#include "bary/generate/generate.h"
#include "bary/io/run_folder.h"
#include "bary/kernel/machine.h"
#include "bary/kernel/target.h"
#include "bary/model/count.h"
#include "bary/report/format.h"
#include "bary/report/plot.h"
#include "bary/report/progress.h"
#include "bary/train/loop.h"

namespace bary {
namespace {

struct Peaks {
  double fma = 0, tile = 0;
};

void announce(const TrainRequest& r, const TrainStart& s, Peaks peaks, Io& io) {
  const ModelConfig& c = s.model().config();
  io.note((s.pairs ? "pairs   " : "text    ") + data_line(s));
  io.note("model   " + model_line(c));
  int64_t decayed = 0, other = 0;
  for (const Parameter& p : s.model().parameters().list())
    (decays(r.train.adamw.decay, p.role) ? decayed : other) += p.shape.volume();
  io.note(fmt::format("AdamW   learning rate {}, weight decay {} on {} numbers, none on {}; seed {}",
                      r.train.schedule.learning_rate, r.train.adamw.weight_decay, grouped(decayed), grouped(other),
                      r.train.seed));
  const double flops = s.objective->flops_per_update();
  const double rate = 0.65 * peaks.tile * 1e9;  // what a whole step usually reaches of the register tile's rate
  const GradientPlan plan = plan_gradient(c, r.train.traversal, r.train.sequences(), c.block_size, r.train.batch_size);
  const int64_t data = s.text ? s.text->train.size() * 4 : 0;
  io.note(fmt::format(
      "cost    {:.{}f} GFLOP a step, {} steps; forecast: about {} and {} of memory ({}, {} threads, {:.0f} GFLOP/s "
      "peak)",
      flops / 1e9, flops < 1e9 ? 3 : 1, grouped(r.train.max_iters),
      duration_text(flops * static_cast<double>(r.train.max_iters) / rate),
      bytes_text(static_cast<int64_t>(forecast_memory(c, plan.at_once, plan.buffers).total()) + data + (30 << 20)),
      kernel::active_isa(), threads(), peaks.fma));
}

// What the loop tells, on the terminal.
class Screen {
 public:
  Screen(const TrainRequest& r, const TrainStart& s, Peaks peaks, Io& io)
      : r_(r),
        s_(s),
        peaks_(peaks),
        io_(io),
        view_(io.err_is_terminal, io.columns, io.unicode, std::max<int64_t>(r.train.max_iters / 20, 1)) {}

  TrainHooks hooks(const std::atomic<bool>* stop) {
    TrainHooks h;
    h.note = [this](const std::string& line) { line_out(line); };
    h.step = [this](const StepReport& e) { step(e); };
    h.evaluated = [this](const EvalReport& e) { evaluated(e); };
    h.sample = [this](int64_t at, Model&) { sample(at); };
    h.stop = stop;
    return h;
  }
  void plot() {
    if (curve_.x.size() < 4) return;
    std::vector<Series> all{curve_};
    if (val_.x.size() > 1) all.push_back(val_);
    PlotOptions o;
    o.title = "loss, nats a token";
    o.x_label = "updates";
    o.unicode = io_.unicode;
    io_.note(line_plot(all, o));
  }

 private:
  void line_out(const std::string& line) {
    io_.draw(view_.clear());
    io_.note(line);
  }
  void step(const StepReport& e) {
    curve_.x.push_back(static_cast<double>(e.step)), curve_.y.push_back(e.loss);
    if (first_ < 0) first_ = e.step - 1;
    seconds_ += e.seconds;
    const auto tokens = static_cast<int64_t>(e.tokens_per_second * seconds_);
    Progress p{e.step, e.max_iters, first_, tokens, seconds_, e.loss, e.gflops / peaks_.fma};
    io_.draw(view_.update(p));
  }
  void evaluated(const EvalReport& e) {
    if (e.val.tokens) val_.x.push_back(static_cast<double>(e.step)), val_.y.push_back(e.val.loss());
    std::string text = fmt::format("step {:>6}  train loss {:.4f}", grouped(e.step), e.train.loss());
    if (e.val.tokens) text += fmt::format("  val loss {:.4f}  perplexity {:.2f}", e.val.loss(), e.val.perplexity());
    if (e.val.sequences) text += fmt::format("  tokens right {}", percent_text(e.val.accuracy()));
    if (e.val.sequences && s_.pairs) text += fmt::format("  whole targets {}", percent_text(e.val.exact_match()));
    if (e.val.bytes) text += fmt::format("  {:.3f} bits per byte", e.val.bits_per_byte());
    if (e.final) text += "  (whole texts)";
    line_out(text + (e.best ? "  *best" : ""));
  }
  void sample(int64_t at) {
    if (s_.pairs) {
      const auto answer = [this](const std::vector<std::string>& sources) {
        if (!s_.pair_model) return translate(OneStack{*s_.language, s_.pairs->target(), r_.train.prefix}, sources, {});
        return translate(Sides{*s_.pair_model, s_.pairs->source(), s_.pairs->target()}, sources, {});
      };
      for (const std::string& line : sample_pairs(*s_.pairs, r_.train.seed, 3, answer)) line_out("  " + line);
      return;
    }
    if (!s_.text || !s_.text->tokenizer || !s_.language->config().causal()) return;
    GenerateOptions o;
    o.max_new_tokens = r_.train.sample_tokens;
    o.seed = r_.train.seed;
    if (s_.language->config().learned_positions())
      o.max_new_tokens = std::min<int64_t>(o.max_new_tokens, s_.language->config().positions() - 1);
    auto text = generate(*s_.language, *s_.text->tokenizer, {r_.train.sample_prompt}, o);
    line_out(fmt::format("sample at step {}: {}{}", grouped(at), r_.train.sample_prompt, text[0].text));
  }

  const TrainRequest& r_;
  const TrainStart& s_;
  Peaks peaks_;
  Io& io_;
  ProgressView view_;
  Series curve_{"train (each batch)", {}, {}}, val_{"held out", {}, {}};
  int64_t first_ = -1;
  double seconds_ = 0;
};

nlohmann::json summary(const TrainRequest& r, const TrainResult& t) {
  const bool best = t.best_step >= 0;
  nlohmann::json all{{"out_dir", r.train.out_dir},
                     {"steps", t.steps},
                     {"interrupted", t.interrupted},
                     {"stopped_early", t.stopped_early},
                     {"seconds", t.seconds},
                     {"best_val_loss", best ? nlohmann::json(t.best_val_loss) : nlohmann::json()},
                     {"best_step", best ? nlohmann::json(t.best_step) : nlohmann::json()},
                     {"weights_sha256", t.weights_sha256},
                     {"tokens_per_second", t.seconds > 0 ? static_cast<double>(t.tokens) / t.seconds : 0}};
  const nlohmann::json train = to_json(t.train, "train");
  all.update({{"train_loss", train["train_loss"]}, {"train_perplexity", train["train_perplexity"]}});
  all.update(to_json(t.val, "val"));
  return all;
}

// What to do with the model now
std::string next_command(const TrainRequest& r, const TrainStart& s) {
  const std::string& run = r.train.out_dir;
  if (s.pairs) return fmt::format("let it answer: bary translate {} --source \"...\"", run);
  if (r.model.arch == Arch::encoder) return fmt::format("let it fill gaps: bary fill {} \"... [MASK] ...\"", run);
  return fmt::format("let it write: bary generate {} --prompt \"...\"", run);
}

// How good the model is, in a line
std::string measured(const TrainStart& s, const TrainResult& t) {
  if (t.val.sequences) {
    const std::string whole =
        s.pairs ? fmt::format(", whole targets {} of {}", percent_text(t.val.exact_match()), grouped(t.val.sequences))
                : fmt::format(" of {} that were hidden", grouped(t.val.tokens));
    return fmt::format("held out: tokens right {}{}; perplexity {:.3f} (train {:.3f})\n",
                       percent_text(t.val.accuracy()), whole, t.val.perplexity(), t.train.perplexity());
  }
  if (t.val.tokens)
    return fmt::format("held-out perplexity {:.2f} (train {:.2f}){}\n", t.val.perplexity(), t.train.perplexity(),
                       t.val.bytes ? fmt::format(", {:.3f} bits per byte", t.val.bits_per_byte()) : "");
  return t.train.tokens ? fmt::format("train perplexity {:.2f}; nothing is held out\n", t.train.perplexity()) : "";
}

void report(const TrainRequest& r, const TrainStart& s, const TrainResult& t, Io& io) {
  if (r.json) return io.print(dump_json(summary(r, t)) + "\n");
  if (t.interrupted) {
    io.print(fmt::format("stopped after {} updates and saved; go on with: bary train --init_from resume --out_dir {}\n",
                         grouped(t.steps), r.train.out_dir));
    return;
  }
  io.print(measured(s, t));
  if (r.train.eval_only) {
    if (r.train.eval_iters)
      io.print(fmt::format("on {} fixed windows of each; --eval_iters all takes the whole texts\n",
                           grouped(r.train.eval_iters)));
    return;
  }
  if (t.stopped_early)
    io.print(fmt::format("stopped early: {} evaluations without improvement on step {}\n", r.train.patience,
                         grouped(t.best_step)));
  io.print(fmt::format("{} updates in {}, {} tokens/s; weights {}\n", grouped(t.steps), duration_text(t.seconds),
                       short_count(t.seconds > 0 ? static_cast<double>(t.tokens) / t.seconds : 0),
                       t.weights_sha256.substr(0, 16)));
  io.print(fmt::format("written to {}; {}\n", r.train.out_dir, next_command(r, s)));
}

int run_train(std::span<const std::string> args, Io& io) {
  std::vector<std::string> changes;
  TrainRequest r = parse_train_request(args, changes);
  set_threads(static_cast<int>(r.train.threads));
  kernel::apply_isa_from_environment();
  for (const std::string& c : changes) io.note("changed against the run's record: " + c);
  check_not_overwritten(r);
  if (!r.train.eval_only) check_writable(r.train.out_dir);  // before minutes are spent on a text
  TrainStart s = prepare_training(r, io);
  const Peaks peaks{kernel::measure_fma_peak(), kernel::measure_tile_peak()};
  announce(r, s, peaks, io);
  std::optional<InterruptGuard> guard;
  if (!r.train.eval_only) guard.emplace();  // a look has nothing to save: Ctrl-C ends it
  std::atomic<bool> stop{false};
  Screen screen(r, s, peaks, io);
  TrainHooks hooks = screen.hooks(&stop);
  hooks.step = [inner = hooks.step, &stop](const StepReport& e) {
    inner(e);
    if (interrupted()) stop = true;
  };
  TrainLoop loop(r.train, *s.objective, hooks, r.record());
  check_not_overwritten(r);  // again, now that the folder is ours alone: another run may have ended in it meanwhile
  if (r.train.init_from == "resume") loop.resume();
  TrainResult t = loop.run();
  if (!r.json) screen.plot();
  report(r, s, t, io);
  return t.interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace

Command train_command() {
  return {"train",
          "train a model on a text or on pairs of texts",
          "[FILE|FOLDER|-|NAME] [--config FILE] [--key value ...]",
          {{"bary train", "the chapter's one-block transformer on tiny Shakespeare"},
           {"bary train book.txt --out_dir runs/book --n_layer 4 --max_iters 2000", "your own text"},
           {"bary train --model copy --task reverse --out_dir runs/reverse", "an encoder-decoder on pairs of texts"},
           {"bary train --arch encoder --out_dir runs/gaps", "a model that fills gaps (masked tokens)"},
           {"bary train --init_from resume --out_dir runs/book", "go on where it stopped, bit for bit"},
           {"bary train poems/ --init_from runs/book --learning_rate 1e-4 --out_dir runs/poems", "fine-tune"}},
          [] { return TrainRequest().options().help(); },
          run_train};
}

}  // namespace bary
