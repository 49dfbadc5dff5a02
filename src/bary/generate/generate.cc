// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/generate.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "bary/base/clock.h"
#include "bary/base/parallel.h"
#include "bary/text/special_tokens.h"

namespace bary {

Tensor last_logits(const LanguageModel& model, const Tensor& hidden) {
  Tensor last(Shape{1, 1, hidden.channels()});
  std::copy_n(hidden.row(hidden.rows() - 1), hidden.channels(), last.data());
  return model.head(last);
}

std::vector<float> next_logits(const LanguageModel& model, std::span<const int32_t> ids, KvCache* cache,
                               int64_t chunk) {
  BARY_CHECK(!ids.empty(), "generate: no tokens to go on from");
  Pass pass;
  pass.cache = cache;
  const auto n = static_cast<int64_t>(ids.size());
  if (chunk <= 0 || !cache) chunk = n;
  Tensor h;
  for (int64_t at = 0; at < n; at += chunk)
    h = model.hidden(ids.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(chunk, n - at))), 1, pass);
  return last_logits(model, h).to_vector();
}

double cache_numbers(const ModelConfig& c, int64_t positions) {
  if (c.recurrent() || c.mixer != Mixer::attention) return 0;
  return 2.0 * static_cast<double>(positions) * static_cast<double>(c.n_layer) * static_cast<double>(c.heads_kv()) *
         static_cast<double>(c.head_width());
}

void check_cache_memory(const ModelConfig& c, int64_t texts, int64_t positions) {
  const double floats = static_cast<double>(std::min<int64_t>(texts, threads())) * cache_numbers(c, positions);
  constexpr double kMost = 4e9;  // 16 GB
  BARY_CHECK(floats < kMost, "generate: the cache of {} positions would need {:.0f} GB; ask for fewer tokens",
             positions, floats * 4e-9);
}

namespace {

// Holds text back while it may still become a stop string.
class StopWatcher {
 public:
  explicit StopWatcher(const std::vector<std::string>& stops) : stops_(stops) {}
  // Returns what is certain; `stopped` once a stop string is complete.
  std::string push(const std::string& text) {
    held_ += text;
    size_t end = std::string::npos;
    for (const std::string& s : stops_)
      if (!s.empty()) end = std::min(end, held_.find(s));
    if (end != std::string::npos) {
      stopped = true;
      return held_.substr(0, end);
    }
    size_t keep = 0;
    for (const std::string& s : stops_)
      for (size_t n = std::min(s.size(), held_.size()); n > keep; --n)
        if (held_.compare(held_.size() - n, n, s, 0, n) == 0) keep = n;
    std::string certain = held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return certain;
  }
  std::string flush() { return std::exchange(held_, ""); }
  bool stopped = false;

 private:
  const std::vector<std::string>& stops_;
  std::string held_;
};

std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt) {
  auto ids = tokenizer.encode(prompt, SpecialPolicy::as_text());
  if (ids.empty()) {
    auto start = tokenizer.start_token();
    BARY_CHECK(start.has_value(),
               "generate: the prompt is empty and this tokenizer has no start token; give a prompt of at least "
               "one character, for example a line break");
    ids.push_back(*start);
  }
  return ids;
}

struct Job {
  const LanguageModel& model;
  const Tokenizer& tokenizer;
  const GenerateOptions& o;
  std::vector<int32_t> gaps;  // ids that stand for nothing and are never drawn
  std::mutex& speaking;
};

bool cancelled(const Job& job) {
  if (!job.o.cancelled) return false;
  std::lock_guard lock(job.speaking);
  return job.o.cancelled();
}

int32_t draw(const Job& job, std::vector<float>& logits, std::span<const int32_t> history, size_t index, int64_t n) {
  for (int32_t id : job.gaps) logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
  RandomStream random(job.o.seed, Purpose::sample, static_cast<uint64_t>(n), index);
  return sample_token(logits, job.tokenizer.vocab_size(), history, job.o.sampler, random);
}

Generated run_one(const Job& job, size_t index, std::vector<int32_t> ids) {
  const GenerateOptions& o = job.o;
  const ModelConfig& c = job.model.config();
  const auto prompt = static_cast<int64_t>(ids.size());
  int64_t room = prompt + o.max_new_tokens;
  if (c.learned_positions()) room = std::min(room, c.positions());
  std::optional<KvCache> cache;
  if (o.cache && c.causal()) cache = job.model.make_cache(1, room);
  Generated out;
  out.prompt_tokens = prompt;
  StreamDecoder decoder(job.tokenizer);
  StopWatcher stops(o.stop);
  auto say = [&](const std::string& text) {
    out.text += text;
    if (text.empty() || !o.on_text) return;
    std::lock_guard lock(job.speaking);
    o.on_text(index, text);
  };
  Stopwatch watch;
  std::vector<float> logits = next_logits(job.model, ids, cache ? &*cache : nullptr, o.prefill_chunk);
  out.prompt_seconds = watch.seconds();
  watch.restart();
  for (int64_t n = 0;; ++n) {
    if (n == o.max_new_tokens) break;
    if (cancelled(job)) {
      out.finish = Finish::cancelled;
      break;
    }
    const int32_t id = draw(job, logits, ids, index, n);
    if (o.stop_token && id == *o.stop_token) {
      out.finish = Finish::stop;
      break;
    }
    ids.push_back(id);
    out.ids.push_back(id);
    say(stops.push(decoder.push(id)));
    if (stops.stopped) {
      out.finish = Finish::stop;
      break;
    }
    if (n + 1 == o.max_new_tokens) break;  // the last token needs no pass after it
    if (static_cast<int64_t>(ids.size()) > room) {
      out.finish = Finish::context;
      break;
    }
    std::span<const int32_t> next(ids);
    logits = next_logits(job.model, cache ? next.last(1) : next, cache ? &*cache : nullptr, 0);
  }
  if (!stops.stopped) {
    std::string rest = stops.push(decoder.flush());
    if (stops.stopped) {
      out.finish = Finish::stop;
    } else {
      rest += stops.flush();
    }
    say(rest);
  }
  out.generation_seconds = watch.seconds();
  return out;
}

}  // namespace

std::vector<Generated> generate(LanguageModel& model, const Tokenizer& tokenizer,
                                const std::vector<std::string>& prompts, const GenerateOptions& o) {
  check_sampler(o.sampler);
  constexpr int64_t kMost = int64_t{1} << 40;
  BARY_CHECK(o.max_new_tokens >= 0 && o.max_new_tokens <= kMost, "max_new_tokens: got {}, expected 0 to {}",
             o.max_new_tokens, kMost);
  BARY_CHECK(model.config().arch != Arch::encoder,
             "generate: this model is an encoder: each of its tokens sees the whole text, so it tells what is missing "
             "and has nothing to go on from; let it fill gaps with `bary fill`, or train with --arch decoder");
  BARY_CHECK(tokenizer.vocab_size() <= model.config().vocab_size,
             "generate: the tokenizer has {} tokens, the model {}; do they "
             "belong together?",
             tokenizer.vocab_size(), model.config().vocab_size);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& p : prompts) {
    ids.push_back(prompt_ids(tokenizer, p));
    const auto n = static_cast<int64_t>(ids.back().size());
    const bool ends = model.config().learned_positions();
    const int64_t wanted = n + o.max_new_tokens, most = ends ? std::min(wanted, model.config().positions()) : wanted;
    model.ensure_positions(ends ? n : wanted);
    if (o.cache && model.config().causal()) check_cache_memory(model.config(), std::ssize(prompts), most);
  }
  std::vector<Generated> out(prompts.size());
  std::mutex speaking;
  const Job job{model, tokenizer, o, tokenizer.gaps(), speaking};
  if (prompts.size() == 1) {  // the threads go into the products instead
    out[0] = run_one(job, 0, ids[0]);
  } else {
    parallel_tasks(static_cast<int64_t>(prompts.size()), [&](int64_t i, int) {
      out[static_cast<size_t>(i)] = run_one(job, static_cast<size_t>(i), ids[static_cast<size_t>(i)]);
    });
  }
  return out;
}

}  // namespace bary
