// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/runner.h"

#include "bary/base/clock.h"
#include "bary/base/error.h"

namespace bary::lab {
namespace {

// One run over the chosen experiments.
class Runner {
 public:
  Runner(const RunOptions& options, Results& results, const RunHooks& hooks)
      : options_(options), results_(results), hooks_(hooks) {}

  void expect(const Experiment& e) {
    const Rows rows = results_.rows(e);
    for (const Unit& u : e.units(options_.plan)) {
      ++units_;
      rows.run(u.key) ? void(++done_) : void(gflop_left_ += u.gflop);
    }
  }
  void run(const Experiment& e) {
    const Rows rows = results_.rows(e);
    for (const Unit& u : e.units(options_.plan))
      if (!rows.run(u.key)) run_unit(e, u);
    if (hooks_.judged) hooks_.judged(e);
  }

 private:
  void run_unit(const Experiment& e, const Unit& u) {
    Stopwatch watch;
    auto report = [&](double share) {
      if (hooks_.stop && hooks_.stop()) throw Stopped();
      if (hooks_.progress) hooks_.progress({e, u, share, done_, units_, seconds_left(u.gflop * share)});
    };
    const Work work{options_.plan, [this](int64_t window) -> const TrainData& { return text(window); }, report};
    report(0);
    nlohmann::json row = measured(u, work);
    row["seconds"] = watch.seconds();
    results_.add(e, u.key, row, options_.machine);
    ++done_;
    gflop_done_ += u.gflop;
    gflop_left_ -= u.gflop;
    if (hooks_.finished) hooks_.finished({e, u, 1, done_, units_, seconds_left(0)}, row);
  }

  std::optional<double> seconds_left(double of_this_unit) const {
    const double done = gflop_done_ + of_this_unit;
    if (done <= 0) return {};
    return clock_.seconds() / done * (gflop_left_ - of_this_unit);
  }

  // What broke off would break off again: it is kept as run, and the others go on.
  static nlohmann::json measured(const Unit& u, const Work& work) {
    try {
      return u.run(work);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::numeric) throw;
      return {{"stopped", e.what()}};
    }
  }

  const TrainData& text(int64_t window) {
    if (!data_) {
      data_ = TrainData::load(options_.data, {});
      results_.set_corpus_sha256(data_->sha256);
    }
    const std::pair<TokenSpan, const char*> parts[] = {{data_->train, "part of the text to learn from"},
                                                       {data_->val, "held-out part of the text"}};
    for (const auto& [part, name] : parts)
      BARY_CHECK(part.size() > window,
                 "lab: the {} has {} tokens, windows of {} need at least {}; choose a longer text", name, part.size(),
                 window, window + 1);
    return *data_;
  }

  const RunOptions& options_;
  Results& results_;
  const RunHooks& hooks_;
  std::optional<TrainData> data_;
  Stopwatch clock_;
  int64_t units_ = 0, done_ = 0;
  double gflop_done_ = 0, gflop_left_ = 0;
};

}  // namespace

bool run_experiments(std::span<const Experiment* const> chosen, const RunOptions& options, Results& results,
                     const RunHooks& hooks) {
  Runner runner(options, results, hooks);
  for (const Experiment* e : chosen) runner.expect(*e);
  try {
    for (const Experiment* e : chosen) runner.run(*e);
  } catch (const Stopped&) {
    return false;
  }
  return true;
}

double gflop_left(const Experiment& e, const Plan& plan, const Rows& rows) {
  double sum = 0;
  for (const Unit& u : e.units(plan))
    if (!rows.run(u.key)) sum += u.gflop;
  return sum;
}

}  // namespace bary::lab
