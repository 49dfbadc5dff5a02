// SPDX-License-Identifier: Apache-2.0
// Why scores are divided by sqrt(d_k): the variance of q . k, what it does to a softmax, and to its Jacobian.
#include <algorithm>
#include <cmath>

#include "bary/base/random.h"
#include "bary/lab/list.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

constexpr int64_t kWidths[] = {4, 16, 64, 256, 1024};
constexpr int64_t kPairs = 20'000, kRows = 2'000, kKeys = 64;  // a hundredth of them in a smoke run

double product(RandomStream& random, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += random.normal() * random.normal();
  return sum;
}

struct Softened {
  double effective, jacobian, top;  // exp(entropy), sum of w (1-w), the largest weight
};
Softened soften(const std::vector<double>& scores, double scale) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0, entropy = 0, squares = 0;
  for (double s : scores) sum += std::exp((s - most) * scale);
  for (double s : scores) {
    const double w = std::exp((s - most) * scale) / sum;
    if (w > 0) entropy -= w * std::log(w);
    squares += w * w;
  }
  return {std::exp(entropy), 1 - squares, 1 / sum};
}

nlohmann::json measure(int64_t d, const Work& work) {
  const int64_t share = work.plan.pick<int64_t>(100, 1, 1), pairs = kPairs / share, row_count = kRows / share;
  RandomStream random(1, Purpose::synthetic, static_cast<uint64_t>(d));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const double p = product(random, d);
    sum += p, squares += p * p;
  }
  const double n = static_cast<double>(pairs), mean = sum / n;
  std::vector<double> effective[2], jacobian[2];
  int64_t frozen[2] = {0, 0};
  for (int64_t r = 0; r < row_count; ++r) {
    std::vector<double> q(static_cast<size_t>(d)), scores(kKeys, 0.0);
    for (double& v : q) v = random.normal();
    for (double& s : scores)
      for (double v : q) s += v * random.normal();
    for (int divided : {0, 1}) {
      const Softened w = soften(scores, divided ? 1 / std::sqrt(static_cast<double>(d)) : 1.0);
      effective[divided].push_back(w.effective), jacobian[divided].push_back(w.jacobian);
      frozen[divided] += w.top > 0.99;
    }
    if (r % 100 == 0) work.progress(static_cast<double>(r) / static_cast<double>(row_count));
  }
  auto mean_of = [](const std::vector<double>& v) { return Sample{v}.mean(); };
  auto median_of = [](std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + std::ssize(v) / 2, v.end());
    return v[v.size() / 2];
  };
  return {{"variance", (squares - n * mean * mean) / (n - 1)},
          {"effective", mean_of(effective[0])},
          {"effective_median", median_of(effective[0])},
          {"effective_divided", mean_of(effective[1])},
          {"jacobian", mean_of(jacobian[0])},
          {"jacobian_divided", mean_of(jacobian[1])},
          {"frozen", static_cast<double>(frozen[0]) / static_cast<double>(row_count)},
          {"frozen_divided", static_cast<double>(frozen[1]) / static_cast<double>(row_count)}};
}

// sum of d products of normals has kurtosis 3 + 6/d, so the variance of n of them is known to within this
double standard_error(double d) { return d * std::sqrt((2 + 6 / d) / static_cast<double>(kPairs)); }

Findings judge(const Rows& rows, const Plan& plan) {
  const char* published[] = {"3.975", "16.071", "64.249", "253.065", "1015.562"};
  const char* published_deviation[] = {"1.994", "4.009", "8.016", "15.908", "31.868"};
  Findings f;
  Table variance({{"d_k", Align::right},
                  {"variance of q.k", Align::right},
                  {"published", Align::right},
                  {"standard error", Align::right},
                  {"standard deviation", Align::right},
                  {"published", Align::right}});
  Table softened({{"d_k", Align::right},
                  {"effective tokens", Align::right},
                  {"divided", Align::right},
                  {"sum w(1-w)", Align::right},
                  {"divided", Align::right},
                  {"frozen rows", Align::right},
                  {"divided", Align::right}});
  Figure figure{"effective tokens of 64",
                "d_k",
                "exp(entropy)",
                {{"undivided", {}, {}}, {"divided by sqrt(d_k)", {}, {}}},
                true,
                false};
  bool variances = true, flat = true, nothing_frozen = true, complete = true;
  for (size_t i = 0; i < std::size(kWidths); ++i) {
    const double d = static_cast<double>(kWidths[i]);
    const std::string key = "d " + std::to_string(kWidths[i]);
    if (!rows.has(key)) {
      complete = false;
      continue;
    }
    auto v = [&](const char* field) { return rows.number(key, field); };
    variance.row({std::to_string(kWidths[i]), number_text(v("variance"), 6), published[i],
                  number_text(standard_error(d), 3), number_text(std::sqrt(v("variance")), 5), published_deviation[i]});
    softened.row({std::to_string(kWidths[i]), number_text(v("effective"), 4), number_text(v("effective_divided"), 4),
                  number_text(v("jacobian"), 3), number_text(v("jacobian_divided"), 3), percent_text(v("frozen")),
                  percent_text(v("frozen_divided"))});
    figure.series[0].x.push_back(d), figure.series[0].y.push_back(v("effective"));
    figure.series[1].x.push_back(d), figure.series[1].y.push_back(v("effective_divided"));
    variances = variances && std::fabs(v("variance") - d) <= 3 * standard_error(d);
    flat = flat && std::fabs(v("jacobian_divided") - 0.96) <= 0.01;
    nothing_frozen = nothing_frozen && v("frozen_divided") == 0;
  }
  f.tables.emplace_back("variance of q.k over 20,000 random pairs", variance);
  f.tables.emplace_back("softmax of rows of 64 scores, means over 2,000 rows; frozen: more than 0.99 on one token",
                        softened);
  f.figures.push_back(figure);
  if (!complete) return f;
  auto v = [&](const char* key, const char* field) { return rows.number(key, field); };
  f.say("B2", "d 1024: " + number_text(v("d 1024", "variance"), 6), plan.unless_smoke(verdict_of(variances)));
  f.say(
      "B3",
      fmt::format("{} on average, {} the median row", number_text(v("d 256", "effective"), 3),
                  number_text(v("d 256", "effective_median"), 3)),
      plan.unless_smoke(verdict_of(v("d 256", "effective") < 1.5 && std::round(v("d 256", "effective_median")) == 1)));
  f.say("B4 frozen", percent_text(v("d 1024", "frozen")),
        plan.unless_smoke(verdict_of(v("d 1024", "frozen") >= 0.6 && v("d 1024", "frozen") <= 0.8)));
  f.say("B4 flat", number_text(v("d 1024", "jacobian_divided"), 3),
        plan.unless_smoke(verdict_of(flat && nothing_frozen)));
  return f;
}

}  // namespace

Experiment scores() {
  Experiment e;
  e.name = "scores";
  e.question = "What does a dot product of wide vectors do to a softmax, and what does dividing by sqrt(d_k) undo?";
  e.claims = {
      {"B2", "The variance of q.k is d_k for entries of variance 1.", "3.975 ... 1015.562",
       "at every width within three standard errors of d_k"},
      {"B3", "Undivided at d_k 256 a fresh head looks at one token of 64.", "1",
       "exp(entropy) below 1.5 on average, and the median row rounds to 1"},
      {"B4 frozen", "Undivided at d_k 1024 seven rows in ten are frozen.", "7 in 10",
       "60 to 80 % of rows put more than 0.99 on one token"},
      {"B4 flat", "Divided, the Jacobian's diagonal is the same at every width and nothing saturates.", "0.96",
       "the sum of w(1-w) over a row is 0.96 to 0.01 at every width and no row puts more than 0.99 on one token"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    const double share = plan.pick(0.01, 1.0, 1.0);
    for (int64_t d : kWidths)
      units.push_back({"d " + std::to_string(d), share * static_cast<double>(d) * (2 * kPairs + kRows * kKeys) * 5e-6,
                       [d](const Work& work) { return measure(d, work); }});
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
