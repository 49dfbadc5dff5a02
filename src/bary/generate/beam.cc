// SPDX-License-Identifier: Apache-2.0
#include "bary/generate/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "bary/base/parallel.h"
#include "bary/base/portable_math.h"
#include "bary/generate/generate.h"
#include "bary/kernel/loss.h"

namespace bary {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

struct Row {  // a beginning that may grow
  std::vector<int32_t> ids;
  double log_probability = 0;
};

struct Source {      // one of a search
  size_t index = 0;  // among all
  int64_t place = 0, max_tokens = 0;
  std::vector<Row> rows;
  std::vector<Hypothesis> ended;
};

struct Candidate {
  double log_probability;
  int64_t row, token;
};
bool better(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.row != b.row ? a.row < b.row : a.token < b.token;
}

double score_of(double log_probability, size_t tokens, const BeamOptions& o) {
  if (o.length_penalty == 0) return log_probability;
  return log_probability / portable::pow(static_cast<double>(std::max<size_t>(tokens, 1)), o.length_penalty);
}

void by_score(std::vector<Hypothesis>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

// Tokens that would complete a run of n that stands in ids already
void forbid_repeats(const std::vector<int32_t>& ids, int64_t n, std::vector<double>& log_p) {
  const auto run = static_cast<size_t>(n);
  if (n <= 0 || ids.size() + 1 < run) return;
  const auto tail = ids.end() - static_cast<std::ptrdiff_t>(run - 1);
  for (size_t i = 0; i + run <= ids.size(); ++i)
    if (std::equal(tail, ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(i)))
      log_p[static_cast<size_t>(ids[i + run - 1])] = kImpossible;
}

int64_t longest_target(const ModelConfig& c, const BeamOptions& o, int64_t source) {
  const int64_t most = longest_answer(c, o.max_tokens, source);
  return c.learned_positions() ? std::min(most, c.positions() - 1) : most;
}

class Search {
 public:
  Search(const Seq2Seq& model, std::span<const std::vector<int32_t>> sources, size_t first, const BeamOptions& o,
         std::mutex& speaking)
      : model_(model),
        o_(o),
        speaking_(speaking),
        ends_(std::find(o.never.begin(), o.never.end(), o.tokens.eos) == o.never.end()) {
    memory_ = model.encode(pad(sources, o.tokens.pad));
    int64_t most = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto S = static_cast<int64_t>(sources[i].size());
      const int64_t limit = longest_target(model.config(), o, S);
      live_.push_back({first + i, static_cast<int64_t>(i), limit, {Row{}}, {}});
      most = std::max(most, limit);
    }
    cache_ = model.make_cache(static_cast<int64_t>(sources.size()), most + 1);
  }

  // f(source) for every one, as it is done
  template <class F>
  void run(const F& done) {
    for (int64_t length = 0; !live_.empty(); ++length) {
      step(length);
      const bool stop = cancelled();
      std::vector<int64_t> kept;
      std::vector<Source> next;
      for (Source& s : live_) {
        if (stop || finished(s, length)) {
          close(s);
          done(s);
          continue;
        }
        kept.insert(kept.end(), parents_[s.index].begin(), parents_[s.index].end());
        next.push_back(std::move(s));
      }
      live_ = std::move(next);
      parents_.clear();
      if (!live_.empty()) cache_.reorder(kept);
    }
  }

 private:
  void step(int64_t length) {
    std::vector<int32_t> last;
    for (const Source& s : live_)
      for (const Row& r : s.rows) last.push_back(r.ids.empty() ? o_.tokens.bos : r.ids.back());
    Pass pass;
    pass.memory = &memory_;
    pass.cache = &cache_;
    const Tensor logits = model_.head(model_.decode(last, static_cast<int64_t>(last.size()), pass));
    int64_t row = 0;
    for (Source& s : live_) {
      const auto rows = static_cast<int64_t>(s.rows.size());
      grow(s, logits, row, length == s.max_tokens);
      row += rows;
    }
  }

  // The likeliest `beam` continuations of a source, whose first row of logits is `first`; at last only ends.
  void grow(Source& s, const Tensor& logits, int64_t first, bool at_last) {
    std::vector<Candidate> all;
    for (size_t r = 0; r < s.rows.size(); ++r) {
      const Row& row = s.rows[r];
      std::vector<double> log_p = log_softmax(logits, first + static_cast<int64_t>(r));
      for (int32_t token : o_.never) log_p[static_cast<size_t>(token)] = kImpossible;
      forbid_repeats(row.ids, o_.no_repeat_ngram, log_p);
      for (size_t v = 0; v < log_p.size(); ++v)
        if (log_p[v] != kImpossible)
          all.push_back({row.log_probability + log_p[v], static_cast<int64_t>(r), static_cast<int64_t>(v)});
    }
    // at most one candidate of every row is an end, so twice the beam holds enough that go on
    const size_t wanted = std::min(all.size(), static_cast<size_t>(2 * o_.beam));
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(), better);
    std::vector<Row> rows;
    std::vector<int64_t>& parents = parents_[s.index];
    for (size_t i = 0; i < wanted && static_cast<int64_t>(rows.size()) < o_.beam; ++i) {
      const Candidate& c = all[i];
      std::vector<int32_t> ids = s.rows[static_cast<size_t>(c.row)].ids;
      if (c.token == o_.tokens.eos) {
        if (static_cast<int64_t>(i) < o_.beam)
          s.ended.push_back({ids, c.log_probability, score_of(c.log_probability, ids.size() + 1, o_), true});
        continue;
      }
      ids.push_back(static_cast<int32_t>(c.token));
      rows.push_back({std::move(ids), c.log_probability});
      parents.push_back(first + c.row);
    }
    if (at_last) return;
    s.rows = std::move(rows);
    if (!o_.on_token || o_.beam != 1 || s.rows.empty() || !s.ended.empty()) return;
    std::lock_guard lock(speaking_);
    o_.on_token(s.index, s.rows[0].ids.back());
  }

  bool cancelled() const {
    if (!o_.cancelled) return false;
    std::lock_guard lock(speaking_);
    return o_.cancelled();
  }

  bool finished(const Source& s, int64_t length) const {
    // after the last token one more pass asks only whether the target ends there
    if (s.rows.empty() || length == s.max_tokens || (!ends_ && length + 1 == s.max_tokens)) return true;
    if (o_.beam == 1) return !s.ended.empty();  // greedy: what ends, ends
    if (static_cast<int64_t>(s.ended.size()) < o_.beam) return false;
    // No row can become better than its log p over the longest it may get.
    std::vector<Hypothesis> ended = s.ended;
    by_score(ended);
    const double bound = score_of(s.rows[0].log_probability, static_cast<size_t>(s.max_tokens + 1), o_);
    return ended[static_cast<size_t>(o_.n_best) - 1].score >= bound;
  }

  void close(Source& s) const {
    by_score(s.ended);
    std::vector<Hypothesis> cut;
    for (Row& r : s.rows) {
      const size_t n = r.ids.size();
      cut.push_back({std::move(r.ids), r.log_probability, score_of(r.log_probability, n, o_), false});
    }
    by_score(cut);
    s.ended.insert(s.ended.end(), cut.begin(), cut.end());
    if (static_cast<int64_t>(s.ended.size()) > o_.n_best) s.ended.resize(static_cast<size_t>(o_.n_best));
  }

  const Seq2Seq& model_;
  const BeamOptions& o_;
  std::mutex& speaking_;
  bool ends_;  // may a target end by itself?
  Memory memory_;
  KvCache cache_;
  std::vector<Source> live_;
  std::map<size_t, std::vector<int64_t>> parents_;  // rows of the cache that a source's rows come from
};

void check(const Seq2Seq& model, std::span<const std::vector<int32_t>> sources, const BeamOptions& o) {
  const int64_t V = model.config().vocab_size;
  BARY_CHECK(o.beam >= 1 && o.beam <= 65536, "beam is {}; it must be 1 (greedy) to 65536", o.beam);
  BARY_CHECK(o.n_best >= 1 && o.n_best <= o.beam, "n_best is {} of a beam of {}; ask for 1 to as many as the beam has",
             o.n_best, o.beam);
  BARY_CHECK(
      o.max_tokens >= 0 && o.max_tokens <= 1 << 24 && o.no_repeat_ngram >= 0 && std::isfinite(o.length_penalty) &&
          o.length_penalty >= 0 && o.together >= 1,
      "max_tokens {} (at most 2^24), no_repeat_ngram {} and length_penalty {} must be finite and not negative, and "
      "together {} at least 1",
      o.max_tokens, o.no_repeat_ngram, o.length_penalty, o.together);
  for (int32_t token : o.never) BARY_CHECK(token >= 0 && token < V, "never: token {} of {}", token, V);
  for (size_t i = 0; i < sources.size(); ++i)
    BARY_CHECK(!sources[i].empty(), "source {} is empty; every source needs a token", i + 1);
}

// A cache of keys and values and the candidates of a pass, in floats; a beam that could not be held is refused before.
void check_memory(const ModelConfig& c, const BeamOptions& o, int64_t rows, int64_t positions) {
  const double floats =
      static_cast<double>(rows) * (cache_numbers(c, positions) + 6.0 * static_cast<double>(c.vocab_size));
  constexpr double kMost = 4e9;  // 16 GB
  BARY_CHECK(floats < kMost,
             "a beam of {} over targets of {} tokens would need {:.0f} GB for {} rows; ask for a smaller beam or "
             "max_tokens",
             o.beam, positions - 1, floats * 4e-9, rows);
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(Seq2Seq& model, std::span<const std::vector<int32_t>> sources,
                                                 const BeamOptions& o) {
  check(model, sources, o);
  size_t longest = 0;
  for (const auto& s : sources) longest = std::max(longest, s.size());
  const ModelConfig& c = model.config();
  const int64_t most = longest_target(c, o, static_cast<int64_t>(longest));
  const auto n = static_cast<int64_t>(sources.size());
  const int64_t together = std::clamp<int64_t>(o.together, 1, std::max<int64_t>(n, 1));
  check_memory(c, o, std::min(n, together * threads()) * o.beam, most + 1);
  model.ensure_positions(static_cast<int64_t>(longest), most + 1);
  std::vector<std::vector<Hypothesis>> out(sources.size());
  const int64_t parts = (n + together - 1) / together;
  std::mutex speaking;
  parallel_tasks(parts, [&](int64_t i, int) {
    const auto first = static_cast<size_t>(i * together);
    const auto some = sources.subspan(first, std::min(static_cast<size_t>(together), sources.size() - first));
    Search(model, some, first, o, speaking).run([&](Source& s) { out[s.index] = std::move(s.ended); });
  });
  return out;
}

int64_t longest_answer(const ModelConfig& c, int64_t asked, int64_t source) {
  return asked ? asked : std::max(c.block_size, 2 * source + 16);
}

std::vector<double> log_softmax(const Tensor& logits, int64_t r) {
  const int64_t V = logits.channels();
  const float* x = logits.row(r);
  const auto best = static_cast<int32_t>(std::max_element(x, x + V) - x);
  std::vector<float> copy(x, x + V);
  double log_sum = 0;  // of exp(x - max): the loss of the likeliest token
  kernel::cross_entropy_rows(1, V, copy.data(), V, &best, 0, &log_sum);
  BARY_CHECK(std::isfinite(log_sum) && std::isfinite(x[best]), ErrorKind::numeric,
             "the model's logits are not finite; its weights are damaged, use an earlier checkpoint");
  std::vector<double> out(static_cast<size_t>(V));
  for (int64_t v = 0; v < V; ++v)
    out[static_cast<size_t>(v)] = -(log_sum + (static_cast<double>(x[best]) - static_cast<double>(x[v])));
  return out;
}

std::vector<double> log_probabilities(const Seq2Seq& model, const PairBatch& batch) {
  std::vector<double> out;
  for (double loss : model.loss(batch).sequences) out.push_back(-loss);
  return out;
}

}  // namespace bary
