// SPDX-License-Identifier: Apache-2.0
// The average over the prefix: what it can do, why it is masked with -inf, and why its weights must be learned from
// both positions (chapter, sections 1 and 2).
#include <algorithm>
#include <cmath>

#include "bary/lab/list.h"
#include "bary/lab/random_tensor.h"
#include "bary/report/format.h"
#include "bary/tensor/fused.h"

namespace bary::lab {
namespace {

constexpr double kStep = 0x1p-23;  // between neighbouring floats, relative

Tensor random_rows(int64_t T, int64_t C, uint64_t which) { return random_tensor({1, T, C}, which); }

nlohmann::json order(const Work&) {  // the last row of the average of a sentence and of its words shuffled
  const int64_t T = 6, C = 32;
  Tensor x = random_rows(T, C, 1), shuffled(x.shape());
  const int64_t to[] = {3, 0, 4, 2, 1, 5};
  for (int64_t t = 0; t < T; ++t) std::copy_n(x.row(t), C, shuffled.row(to[t]));
  const Tensor a = prefix_mean(x), b = prefix_mean(shuffled);
  double moved = 0;
  for (int64_t c = 0; c < C; ++c)
    moved = greater_of(moved, std::fabs(static_cast<double>(a.row(T - 1)[c]) - static_cast<double>(b.row(T - 1)[c])));
  return {{"moved", moved}, {"step", kStep * largest(x)}};
}

Tensor zeros_softmax(int64_t T) { return softmax(masked(Tensor::zeros(Shape{1, T, T}), Mask::causal)); }

nlohmann::json three_ways(const Work&) {
  const int64_t T = 6, C = 32;
  const Tensor x = random_rows(T, C, 1);
  Tensor loop(x.shape()), triangle = Tensor::zeros(Shape{1, T, T});
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t c = 0; c < C; ++c) {
      float sum = 0;
      for (int64_t j = 0; j <= t; ++j) sum += x.row(j)[c];
      loop.row(t)[c] = sum / static_cast<float>(t + 1);
    }
    for (int64_t j = 0; j <= t; ++j) triangle.row(t)[j] = 1.0f / static_cast<float>(t + 1);
  }
  const Tensor weights = zeros_softmax(T), product = matmul(triangle, x), attended = matmul(weights, x);
  const double apart = greatest(
      {largest_difference(loop, product), largest_difference(loop, attended), largest_difference(product, attended)});
  return {{"apart", apart}, {"step", kStep * largest(x)}, {"matrix", weights.to_vector()}};
}

// The nearest number of half precision: 11 bits, at most 65504
double half(double x) {
  if (!std::isfinite(x) || std::fabs(x) >= 65520) return std::copysign(HUGE_VAL, x);
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, 11 - exponent)), exponent - 11);
}

std::vector<double> softmax_of(std::vector<double> scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - top);
  for (double& s : scores) s /= sum;
  return scores;
}

nlohmann::json mask(const Work&) {
  const double minus_infinity = -HUGE_VAL;
  double above = 0;  // weight above the diagonal
  const Tensor w = zeros_softmax(6);
  for (int64_t t = 0; t < 6; ++t)
    for (int64_t j = t + 1; j < 6; ++j) above = greater_of(above, static_cast<double>(w.row(t)[j]));
  // A score that half precision can hold lies below the "large" number: the hidden key takes the row.
  const double leak = softmax_of({half(-20000), half(-1e4)})[1];
  const std::vector<double> hidden{-1e9, 0.5, -1e9};  // a row of float32, two of its three keys hidden
  Tensor row(Shape{1, 1, 3});
  for (size_t i = 0; i < hidden.size(); ++i) row.row(0)[i] = static_cast<float>(hidden[i]);
  const Tensor alone = softmax(row);
  return {{"hidden_1e9", greater_of(static_cast<double>(alone.row(0)[0]), static_cast<double>(alone.row(0)[2]))},
          {"half_of_infinity_is_infinite", half(minus_infinity) == minus_infinity},
          {"above", above},
          {"leak_1e4", leak},
          {"half_of_1e9_is_infinite", half(-1e9) == minus_infinity},
          {"all_hidden_infinity_is_nan", std::isnan(softmax_of({minus_infinity, minus_infinity})[0])},
          {"all_hidden_1e9", softmax_of({-1e9, -1e9, -1e9, -1e9})[0]}};
}

nlohmann::json dilution(const Work&) { return {{"weight", static_cast<double>(zeros_softmax(100).row(99)[99])}}; }

// Scores from x x^T of random tokens, from two random projections, and from one fixed matrix
nlohmann::json both_positions(const Work&) {
  const int64_t T = 64, C = 128;
  const Tensor x = random_rows(T, C, 2), self = matmul_nt(x, x);
  const Tensor q = matmul(x, random_rows(C, C, 3)), k = matmul(x, random_rows(C, C, 4)), learned = matmul_nt(q, k);
  auto favours_self = [&](const Tensor& s) {
    int64_t rows = 0;
    for (int64_t t = 0; t < T; ++t) rows += std::max_element(s.row(t), s.row(t) + T) - s.row(t) == t;
    return static_cast<double>(rows) / static_cast<double>(T);
  };
  auto asymmetry = [&](const Tensor& s) {
    double most = 0;
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j < T; ++j)
        most = greater_of(most, std::fabs(static_cast<double>(s.row(t)[j]) - static_cast<double>(s.row(j)[t])));
    return most / largest(s);
  };
  return {{"self_xx", favours_self(self)},
          {"self_qk", favours_self(learned)},
          {"asymmetry_xx", asymmetry(self)},
          {"asymmetry_qk", asymmetry(learned)}};
}

Findings judge(const Rows& rows, const Plan&) {
  Findings f;
  auto number = [&](const char* key, const char* field) { return rows.number(key, field); };
  if (rows.has("order")) {
    f.say("A5", number_text(number("order", "moved"), 3),
          verdict_of(number("order", "moved") <= number("order", "step")));
  }
  if (rows.has("three ways")) {
    f.say("A6", number_text(number("three ways", "apart"), 3),
          verdict_of(number("three ways", "apart") <= number("three ways", "step")));
    const std::vector<double> m = rows.numbers("three ways", "matrix");
    HeatMap map{
        "softmax over zeros masked with -inf: the average over the prefix", "position", "sees position", {}, {}, m};
    for (int i = 1; i <= 6; ++i)
      map.row_labels.push_back(std::to_string(i)), map.column_labels.push_back(std::to_string(i));
    f.maps.push_back(map);
  }
  if (rows.has("mask")) {
    const auto& m = rows.at("mask");
    const bool holds = m["above"] == 0.0 && m["leak_1e4"] > 0.5 && m["half_of_1e9_is_infinite"] == true &&
                       m["hidden_1e9"] == 0.0 && m["half_of_infinity_is_infinite"] == true &&
                       m["all_hidden_infinity_is_nan"] == true && m["all_hidden_1e9"] == 0.25;
    f.say("A7", fmt::format("-inf: {}; -1e4: {}", number("mask", "above"), number_text(number("mask", "leak_1e4"), 3)),
          verdict_of(holds));
    Table t({{"mask", Align::left}, {"what comes out", Align::left}});
    t.row({"-inf", "hidden weights are exactly 0; a row with every key hidden is NaN"});
    t.row({"-1e9",
           "the same zeros in float32; -inf in half precision; a row with every key hidden is uniform (0.25 of 4)"});
    t.row({"-1e4", "hides nothing from a score of -20,000, which half precision can hold: the hidden key gets " +
                       number_text(number("mask", "leak_1e4"), 3)});
    f.tables.emplace_back("what is put where a query may not look", t);
  }
  if (rows.has("dilution"))
    f.say("A8", number_text(number("dilution", "weight"), 4),
          verdict_of(std::fabs(number("dilution", "weight") - 0.01) < 1e-8));
  if (rows.has("both positions")) {
    const bool holds = number("both positions", "self_xx") == 1 && number("both positions", "asymmetry_xx") == 0 &&
                       number("both positions", "self_qk") < 0.25 && number("both positions", "asymmetry_qk") > 0.1;
    f.say("B1",
          fmt::format("x x^T: self wins {} of rows, asymmetry {}; q k^T: {}, {}",
                      percent_text(number("both positions", "self_xx")),
                      number_text(number("both positions", "asymmetry_xx"), 2),
                      percent_text(number("both positions", "self_qk")),
                      number_text(number("both positions", "asymmetry_qk"), 2)),
          verdict_of(holds));
    f.notes.push_back(
        "A learned T x T matrix is not measured: it has no input, so its weights are the same for every sentence.");
  }
  return f;
}

}  // namespace

Experiment average() {
  Experiment e;
  e.name = "average";
  e.revision = 2;  // the mask's -1e9 in float32 and -inf in half precision are measured
  e.question = "What can an average over the prefix know, and why must its weights be learned?";
  e.claims = {
      {"A5", "The last row of the average does not know the order of the words.", "2.98e-08",
       "shuffling six words moves it by at most one rounding step (2^-23) of the largest number averaged"},
      {"A6", "A loop, a product with the triangle and a softmax over masked zeros are the same average.", "5.96e-08",
       "they differ by at most one rounding step of the largest number averaged"},
      {"A7", "-inf hides exactly; a large number hides only among small scores.", "",
       "weights above the diagonal are exactly 0, and with -1e9 in float32 too; -inf stays -inf in half precision and "
       "-1e9 becomes it; -1e4 leaks under a score of -20,000; a row with all keys hidden is NaN with -inf and uniform "
       "with -1e9"},
      {"A8", "At position 100 the current token is one hundredth of the summary.", "1/100",
       "its weight is 0.01 to 1e-8"},
      {"B1", "Scores x x^T are symmetric and favour the token itself; queries and keys need not.", "",
       "64 random tokens: x x^T exactly symmetric and every row's largest score its own; of random q k^T fewer than a "
       "quarter "
       "and asymmetric by more than a tenth"},
  };
  e.units = [](const Plan&) {
    return std::vector<Unit>{{"order", 0.1, order},
                             {"three ways", 0.1, three_ways},
                             {"mask", 0.1, mask},
                             {"dilution", 0.1, dilution},
                             {"both positions", 0.1, both_positions}};
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
