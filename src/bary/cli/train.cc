// SPDX-License-Identifier: Apache-2.0
// bary train: text in, a trained model out.
#include <fmt/format.h>

#include <atomic>

#include "bary/base/clock.h"
#include "bary/base/json.h"
#include "bary/base/parallel.h"
#include "bary/cli/interrupt.h"
#include "bary/cli/model_commands.h"
#include "bary/cli/train_request.h"
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

struct Start {
  std::unique_ptr<Decoder> model;
  TrainData data;
};

// The model a run begins with: new, or another's weights with this run's settings where they do not touch the shape.
Start prepare(TrainRequest& r, Io& io) {
  std::optional<LoadedModel> from;
  const bool resume = r.train.init_from == "resume", scratch = r.train.init_from == "scratch";
  std::optional<Tokenizer> given;
  if (!scratch) {
    from = load_model(resume ? find_checkpoint(r.train.out_dir, false) : std::filesystem::path(r.train.init_from));
    given = from->tokenizer;
  }
  DataOptions d{r.train.dataset,
                r.train.corpus,
                r.train.tokenizer,
                r.train.ties,
                r.model.vocab_size,
                r.train.val_fraction,
                [&](const std::string& line) { io.note(line); }};
  if (from && !given) d.vocab_size = from->model->config().vocab_size;
  Start s;
  s.data = TrainData::load(d, given);
  if (from) {
    const double dropout = r.model.dropout;
    r.model = from->model->config();
    r.model.dropout = dropout;
  } else {
    r.model.vocab_size = s.data.vocab_size;
  }
  check_window_fits({s.data.train, s.data.val}, r.model.block_size);
  s.model = std::make_unique<Decoder>(r.model, r.train.seed);
  if (from && !resume) copy_parameters(from->model->parameters(), s.model->parameters());
  return s;
}

struct Peaks {
  double fma = 0, tile = 0;
};

void announce(const TrainRequest& r, const Start& s, Peaks peaks, Io& io) {
  const ModelConfig& c = s.model->config();
  const ParameterCount n = count_parameters(c);
  io.note(fmt::format("text    {} ({}), {} tokens to learn from, {} held out, vocabulary {}", s.data.name,
                      s.data.bytes ? bytes_text(s.data.bytes) : "token files", grouped(s.data.train.size()),
                      grouped(s.data.val.size()), grouped(c.vocab_size)));
  io.note(fmt::format("model   {} block{}, width {}, {} heads of {}, window {}: {} parameters ({} of them embeddings)",
                      c.n_layer, c.n_layer == 1 ? "" : "s", c.n_embd, c.n_head, c.head_width(), c.block_size,
                      grouped(n.total), grouped(n.embeddings)));
  int64_t decayed = 0, other = 0;
  for (const Parameter& p : s.model->parameters().list())
    (decays(r.train.adamw.decay, p.role) ? decayed : other) += p.shape.volume();
  io.note(fmt::format("AdamW   learning rate {}, weight decay {} on {} numbers, none on {}; seed {}",
                      r.train.schedule.learning_rate, r.train.adamw.weight_decay, grouped(decayed), grouped(other),
                      r.train.seed));
  const double flops = count_flops(c, c.block_size).training * static_cast<double>(r.train.sequences());
  const double rate = 0.65 * peaks.tile * 1e9;  // what a whole step usually reaches of the register tile's rate
  const GradientPlan plan = plan_gradient(c, r.train.traversal, r.train.sequences(), r.train.batch_size);
  io.note(
      fmt::format("cost    {} tokens and {:.1f} GFLOP a step, {} steps; forecast: about {} and {} of memory ({}, {} "
                  "threads, {:.0f} "
                  "GFLOP/s peak)",
                  grouped(r.train.sequences() * c.block_size), flops / 1e9, grouped(r.train.max_iters),
                  duration_text(flops * static_cast<double>(r.train.max_iters) / rate),
                  bytes_text(static_cast<int64_t>(forecast_memory(c, plan.at_once, plan.buffers).total()) +
                             s.data.train.size() * 4 + (30 << 20)),
                  kernel::active_isa(), threads(), peaks.fma));
}

// What the loop tells, on the terminal.
class Screen {
 public:
  Screen(const TrainRequest& r, const Start& s, Peaks peaks, Io& io)
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
    h.sample = [this](int64_t at, const Decoder&) { sample(at); };
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
    tokens_ += r_.train.sequences() * s_.model->config().block_size;
    seconds_ += e.seconds;
    Progress p{e.step, e.max_iters, first_, tokens_, seconds_, e.loss, e.gflops / peaks_.fma};
    io_.draw(view_.update(p));
  }
  void evaluated(const EvalReport& e) {
    if (e.val.tokens) val_.x.push_back(static_cast<double>(e.step)), val_.y.push_back(e.val.loss());
    std::string text = fmt::format("step {:>6}  train loss {:.4f}", grouped(e.step), e.train.loss());
    if (e.val.tokens) text += fmt::format("  val loss {:.4f}  perplexity {:.2f}", e.val.loss(), e.val.perplexity());
    if (e.val.bytes) text += fmt::format("  {:.3f} bits per byte", e.val.bits_per_byte());
    if (e.final) text += "  (whole texts)";
    line_out(text + (e.best ? "  *best" : ""));
  }
  void sample(int64_t at) {
    if (!s_.data.tokenizer) return;
    GenerateOptions o;
    o.max_new_tokens = r_.train.sample_tokens;
    o.seed = r_.train.seed;
    if (s_.model->config().pos == Position::learned)
      o.max_new_tokens = std::min<int64_t>(o.max_new_tokens, s_.model->config().positions() - 1);
    auto text = generate(*s_.model, *s_.data.tokenizer, {r_.train.sample_prompt}, o);
    line_out(fmt::format("sample at step {}: {}{}", grouped(at), r_.train.sample_prompt, text[0].text));
  }

  const TrainRequest& r_;
  const Start& s_;
  Peaks peaks_;
  Io& io_;
  ProgressView view_;
  Series curve_{"train (each batch)", {}, {}}, val_{"held out", {}, {}};
  int64_t first_ = -1, tokens_ = 0;
  double seconds_ = 0;
};

nlohmann::json summary(const TrainRequest& r, const TrainResult& t) {
  return {{"out_dir", r.train.out_dir},
          {"steps", t.steps},
          {"interrupted", t.interrupted},
          {"seconds", t.seconds},
          {"train_loss", t.train.loss()},
          {"train_perplexity", t.train.perplexity()},
          {"val_loss", t.val.loss()},
          {"val_perplexity", t.val.perplexity()},
          {"val_bits_per_byte", t.val.bits_per_byte()},
          {"best_val_loss", t.best_val_loss},
          {"best_step", t.best_step},
          {"weights_sha256", t.weights_sha256},
          {"tokens_per_second", t.seconds > 0 ? static_cast<double>(t.tokens) / t.seconds : 0}};
}

void report(const TrainRequest& r, const TrainResult& t, Io& io) {
  if (r.json) return io.print(dump_json(summary(r, t)) + "\n");
  if (t.interrupted) {
    io.print(fmt::format("stopped after {} updates and saved; go on with: bary train --init_from resume --out_dir {}\n",
                         grouped(t.steps), r.train.out_dir));
    return;
  }
  if (t.val.tokens)
    io.print(fmt::format("held-out perplexity {:.2f} (train {:.2f}), {:.3f} bits per byte\n", t.val.perplexity(),
                         t.train.perplexity(), t.val.bits_per_byte()));
  io.print(fmt::format("{} updates in {}, {} tokens/s; weights {}\n", grouped(t.steps), duration_text(t.seconds),
                       short_count(t.seconds > 0 ? static_cast<double>(t.tokens) / t.seconds : 0),
                       t.weights_sha256.substr(0, 16)));
  io.print(fmt::format("written to {}; let it write: bary generate {} --prompt \"...\"\n", r.train.out_dir,
                       r.train.out_dir));
}

int run_train(std::span<const std::string> args, Io& io) {
  std::vector<std::string> changes;
  TrainRequest r = parse_train_request(args, changes);
  set_threads(static_cast<int>(r.train.threads));
  kernel::apply_isa_from_environment();
  for (const std::string& c : changes) io.note("changed against the run's record: " + c);
  check_writable(r.train.out_dir);  // before minutes are spent on a text
  Start s = prepare(r, io);
  const Peaks peaks{kernel::measure_fma_peak(), kernel::measure_tile_peak()};
  announce(r, s, peaks, io);
  InterruptGuard guard;
  std::atomic<bool> stop{false};
  Screen screen(r, s, peaks, io);
  TrainHooks hooks = screen.hooks(&stop);
  hooks.step = [inner = hooks.step, &stop](const StepReport& e) {
    inner(e);
    if (interrupted()) stop = true;
  };
  TrainLoop loop(r.train, *s.model, s.data, hooks, r.record());
  if (r.train.init_from == "resume") loop.resume();
  TrainResult t = loop.run();
  if (!r.json) screen.plot();
  report(r, t, io);
  return t.interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace

Command train_command() {
  return {"train",
          "train a transformer on a text",
          "[FILE|FOLDER|-|NAME] [--config FILE] [--key value ...]",
          {{"bary train", "the chapter's one-block transformer on tiny Shakespeare"},
           {"bary train book.txt --out_dir runs/book --n_layer 4 --max_iters 2000", "your own text"},
           {"bary train --model two-blocks --norm post --warmup_iters 200", "a variant of the chapter"},
           {"bary train --init_from resume --out_dir runs/book", "go on where it stopped, bit for bit"},
           {"bary train poems/ --init_from runs/book --learning_rate 1e-4 --out_dir runs/poems", "fine-tune"}},
          [] { return TrainRequest().options().help(); },
          run_train};
}

}  // namespace bary
