// SPDX-License-Identifier: Apache-2.0
// The n^2 cost: one attention layer, width 512, 8 heads, batch 1, forward, from the definition that stores the score
// matrix, and in tiles that never do.
#include <algorithm>
#include <cmath>

#include "bary/base/clock.h"
#include "bary/lab/list.h"
#include "bary/lab/random_tensor.h"
#include "bary/report/format.h"
#include "bary/tensor/attention.h"
#include "bary/tensor/fused.h"

namespace bary::lab {
namespace {

constexpr int64_t kWidth = 512, kHeads = 8;
constexpr double kMegabyte = 1 << 20;
struct Published {
  int64_t n;
  const char *total, *projections, *scores, *peak;
};
constexpr Published kPublished[] = {
    {128, "2.246", "1.324", "0.5", "14.6"},       {256, "2.855", "2.113", "2", "19.2"},
    {512, "5.761", "3.105", "8", "34.4"},         {1024, "16.414", "4.008", "32", "89.1"},
    {2048, "51.573", "9.989", "128", "296.1"},    {4096, "225.432", "20.176", "512", "1100.1"},
    {8192, "832.838", "40.106", "2048", "4300.1"}};

double fastest_ms(int64_t times, const std::function<void()>& f) {
  double best = HUGE_VAL;
  for (int64_t i = 0; i < times; ++i) {
    Stopwatch watch;
    f();
    best = std::min(best, watch.seconds() * 1e3);
  }
  return best;
}

// Freed memory stays with us for a while: the second run shall measure the layer, not the system's handing out pages.
struct Kept {
  int64_t before = keep_freed(int64_t{1} << 31);
  ~Kept() { keep_freed(before); }
};

nlohmann::json layer(int64_t n, bool stored, const Work& work) {
  Parameters p(1);
  const Init init{Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(kWidth))};
  const Tensor qkv = p.add("qkv", {3 * kWidth, kWidth}, Role::matrix, init),
               out = p.add("out", {kWidth, kWidth}, Role::matrix, init);
  const Tensor x = random_tensor({1, n, kWidth}, 1);
  AttentionOptions o;
  o.heads = kHeads;
  o.mask = Mask::full;  // as the chapter's: every score is computed
  auto attend = [&](const Tensor& t) { return stored ? attention_by_definition(t, o) : attention(t, o); };
  linear(attend(linear(random_tensor({1, 64, kWidth}, 1), qkv)), out);  // packs the weights
  const int64_t times = n <= 1024 ? 5 : n <= 8192 ? 2 : 1;
  const Kept kept;
  Tensor result;
  double total, peak;
  {
    const MemoryWatch whole;
    total = fastest_ms(times, [&] {
      result = Tensor();  // else the peak would hold the result of the time before
      result = linear(attend(linear(x, qkv)), out);
    });
    peak = static_cast<double>(whole.peak_floats() + x.rows() * x.stride()) * 4 / kMegabyte;
  }
  work.progress(0.5);
  const double projections = fastest_ms(times + 1, [&] { linear(columns(linear(x, qkv), 0, kWidth), out); });
  result = Tensor();
  const Tensor projected = linear(x, qkv);
  const MemoryWatch alone;
  result = attend(projected);
  const double extra = static_cast<double>(alone.peak_floats() - result.rows() * result.stride()) * 4 / kMegabyte;
  return {{"total_ms", total},
          {"projections_ms", projections},
          {"scores_mb", static_cast<double>(kHeads * n * n) * 4 / kMegabyte},
          {"peak_mb", peak},
          {"extra_mb", extra}};
}

// Tiles and the stored matrix, as the attention layer alone
nlohmann::json same_result(const Work&) {
  const Tensor qkv = random_tensor({1, 1024, 3 * kWidth}, 2);
  double apart = 0;
  for (Mask mask : {Mask::full, Mask::causal}) {
    AttentionOptions o;
    o.heads = kHeads, o.mask = mask;
    const Tensor stored = attention_by_definition(qkv, o);
    apart = greater_of(apart, largest_difference(stored, attention(qkv, o)) / largest(stored));
  }
  return {{"apart", apart}};
}

std::string key(bool stored, int64_t n) { return (stored ? "stored " : "tiled ") + std::to_string(n); }

std::vector<int64_t> lengths(bool stored, const Plan& plan) {
  std::vector<int64_t> all;
  const int64_t last = stored ? plan.pick<int64_t>(512, 8192, 8192) : plan.pick<int64_t>(1024, 65536, 65536);
  for (int64_t n = 128; n <= last; n *= 2) all.push_back(n);
  return all;
}

// The slope of log y over log n by least squares
double exponent(const Rows& rows, bool stored, const char* field, int64_t from, int64_t to) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, k = 0;
  for (int64_t n = from; n <= to; n *= 2) {
    const double x = std::log(static_cast<double>(n)), y = std::log(rows.number(key(stored, n), field));
    sx += x, sy += y, sxx += x * x, sxy += x * y, k += 1;
  }
  return (k * sxy - sx * sy) / (k * sxx - sx * sx);
}

Findings judge(const Rows& rows, const Plan&) {
  Findings f;
  Table table({{"n", Align::right},
               {"stored ms", Align::right},
               {"published", Align::right},
               {"projections ms", Align::right},
               {"published", Align::right},
               {"scores MB", Align::right},
               {"published", Align::right},
               {"peak MB", Align::right},
               {"published", Align::right},
               {"tiled ms", Align::right},
               {"tiled peak MB", Align::right},
               {"tiled extra MB", Align::right}});
  Figure time{"one attention layer, forward",
              "n",
              "ms",
              {{"scores stored", {}, {}}, {"in tiles", {}, {}}, {"projections", {}, {}}},
              true,
              true};
  Figure memory{
      "memory of one attention layer", "n", "MB", {{"scores stored", {}, {}}, {"in tiles", {}, {}}}, true, true};
  for (int64_t n : lengths(false, {Budget::chapter, 1, false})) {
    const std::string s = key(true, n), t = key(false, n);
    if (!rows.has(s) && !rows.has(t)) continue;
    const auto* published =
        std::find_if(std::begin(kPublished), std::end(kPublished), [&](const Published& p) { return p.n == n; });
    const bool known = published != std::end(kPublished);
    auto cell = [&](const std::string& k, const char* field) {
      return rows.has(k) ? number_text(rows.number(k, field), 4) : "";
    };
    const std::string either = rows.has(s) ? s : t;
    table.row({grouped(n), cell(s, "total_ms"),
               known        ? published->total
               : n == 16384 ? "out of memory"
                            : "",
               cell(either, "projections_ms"), known ? published->projections : "", cell(either, "scores_mb"),
               known ? published->scores : "", cell(s, "peak_mb"), known ? published->peak : "", cell(t, "total_ms"),
               cell(t, "peak_mb"), cell(t, "extra_mb")});
    auto point = [&](Series& series, const std::string& k, const char* field) {
      if (rows.has(k)) series.x.push_back(static_cast<double>(n)), series.y.push_back(rows.number(k, field));
    };
    point(time.series[0], s, "total_ms"), point(time.series[1], t, "total_ms"),
        point(time.series[2], either, "projections_ms");
    point(memory.series[0], s, "peak_mb"), point(memory.series[1], t, "peak_mb");
  }
  f.tables.emplace_back("one layer, width 512, 8 heads, forward; published on a laptop's GPU: read its ratios only",
                        table);
  f.figures = {time, memory};
  auto exponent_claim = [&](const char* id, bool stored, const char* field, int64_t from, int64_t to, double low,
                            double high) {
    const double e = exponent(rows, stored, field, from, to);
    f.say(id, std::isfinite(e) ? number_text(e, 3) : "",
          std::isfinite(e) ? verdict_of(e >= low && e <= high) : Verdict::undecided);
  };
  exponent_claim("C1 memory", true, "peak_mb", 1024, 8192, 1.77, 1.97);
  exponent_claim("C1 time", true, "total_ms", 1024, 8192, 1.6, 2.3);
  exponent_claim("C3 projections", true, "projections_ms", 1024, 8192, 0.75, 1.25);
  exponent_claim("C2 linear", false, "extra_mb", 1024, 16384, 0, 1.1);
  if (rows.has("same"))
    f.say("C2 same", number_text(rows.number("same", "apart"), 3) + " of the largest result",
          verdict_of(rows.number("same", "apart") <= 1e-5));
  const double extra = rows.number(key(false, 16384), "extra_mb");
  f.say("C2 extra", std::isfinite(extra) ? number_text(extra, 3) + " MB" : "",
        std::isfinite(extra) ? verdict_of(extra < 64) : Verdict::undecided);
  const double longest = rows.number(key(false, 65536), "extra_mb");
  f.say("C2 longest", std::isfinite(longest) ? number_text(longest, 3) + " MB" : "",
        std::isfinite(longest) ? verdict_of(longest < 64) : Verdict::undecided);
  f.notes.push_back(
      "Memory is counted by the allocator: input, projections, scores, weights after the softmax and result, without "
      "the parameters. "
      "Forward alone, no mask, as the published table. The stored path ends at 8,192: at 16,384 scores and weights "
      "are 8 GB each. C2 linear was asked of the whole peak at first, which inputs and outputs rule; since then it is "
      "asked of the memory beyond them, and C2 same beside it. What of a whole block is linear in n, part by part, "
      "stands under lengths (Q6).");
  return f;
}

}  // namespace

Experiment cost() {
  Experiment e;
  e.name = "cost";
  e.revision = 2;  // the peak without the result of the time before
  e.question = "How do time and memory of attention grow with the text, stored and in tiles?";
  e.claims = {
      {"C1 memory", "The stored score matrix makes memory grow almost with the square of the length.", "1.87",
       "the exponent fitted over n = 1,024 to 8,192 is 1.87 to 0.1"},
      {"C1 time", "So does time.", "1.91", "the exponent over the same rows is 1.6 to 2.3"},
      {"C3 projections", "The projections are linear.", "", "their exponent over the same rows is 0.75 to 1.25"},
      {"C2 linear", "In tiles the same result takes linear memory.", "",
       "the exponent of the memory beyond inputs and outputs over n = 1,024 to 16,384 is at most 1.1"},
      {"C2 same", "It is the same result.", "",
       "at n = 1,024 with the mask and without, no element differs by more than 1e-5 of the largest"},
      {"C2 extra", "At 16,384 positions, out of memory in the chapter, tiles need next to nothing.",
       "out of memory at 8 GB", "less than 64 MB beyond inputs and outputs"},
      {"C2 longest", "Nor at 65,536.", "", "less than 64 MB beyond inputs and outputs"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units{{"same", 20, same_result}};
    for (bool stored : {true, false})
      for (int64_t n : lengths(stored, plan)) {
        const double nn = static_cast<double>(n) * static_cast<double>(n) * 1e-9;
        units.push_back({key(stored, n), 0.2 + nn * (stored ? 12'000 : 4'000),
                         [=](const Work& work) { return layer(n, stored, work); }});
      }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
