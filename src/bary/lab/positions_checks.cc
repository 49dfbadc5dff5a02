// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "bary/base/random.h"
#include "bary/kernel/rows.h"
#include "bary/lab/positions.h"
#include "bary/model/language_model.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

constexpr const char* kNames[] = {"", "linear ", "ntk ", "yarn "};  // of RopeScaling

// How far, of the largest number, the last rows (or all of them, moved along) differ after tokens change places
nlohmann::json order(const Work&) {
  const int64_t T = 32;
  ModelConfig c = preset("block");
  RandomStream random(1, Purpose::synthetic);
  std::vector<int32_t> ids(T);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(c.vocab_size)));
  auto moved = [&](Mask mask, Position pos, int64_t layers) {
    c.mask = mask, c.pos = pos, c.n_layer = layers;
    const LanguageModel model(c, 1);
    const bool all = mask == Mask::full;
    std::vector<size_t> to(ids.size());
    std::iota(to.begin(), to.end(), size_t{0});
    for (size_t i = all ? to.size() : to.size() - 1; i > 1; --i) std::swap(to[i - 1], to[random.below(i)]);
    std::vector<int32_t> other(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) other[i] = ids[to[i]];
    const Tensor a = model.hidden(ids, 1), b = model.hidden(other, 1);
    double most = 0, largest = 0;
    for (int64_t t = all ? 0 : T - 1; t < T; ++t) {
      const float *before = a.row(static_cast<int64_t>(to[static_cast<size_t>(t)])), *after = b.row(t);
      for (int64_t i = 0; i < c.n_embd; ++i) {
        most = greater_of(most, std::fabs(static_cast<double>(before[i]) - static_cast<double>(after[i])));
        largest = greater_of(largest, std::fabs(static_cast<double>(before[i])));
      }
    }
    return most / largest;
  };
  return {{"no mask", moved(Mask::full, Position::none, 1)},
          {"no mask, learned", moved(Mask::full, Position::learned, 1)},
          {"no mask, rotary", moved(Mask::full, Position::rotary, 1)},
          {"masked", moved(Mask::causal, Position::none, 1)},
          {"masked twice", moved(Mask::causal, Position::none, 2)}};
}

// One query and one key at every position: scores along a diagonal are equal. In parts of |q| |k|.
nlohmann::json distance(const Work&) {
  const int64_t T = 256, D = 32;
  RandomStream random(1, Purpose::synthetic, 1);
  Tensor q(Shape{1, T, D}), k(Shape{1, T, D});
  double sizes[2] = {0, 0};
  for (int which : {0, 1}) {
    Tensor& x = which ? k : q;
    for (int64_t i = 0; i < D; ++i) x.row(0)[i] = static_cast<float>(random.normal());
    for (int64_t i = 0; i < D; ++i) sizes[which] += static_cast<double>(x.row(0)[i]) * static_cast<double>(x.row(0)[i]);
    for (int64_t t = 1; t < T; ++t) std::copy_n(x.row(0), D, x.row(t));
  }
  const double size = std::sqrt(sizes[0] * sizes[1]), plain = matmul_nt(q, k).row(0)[0];
  nlohmann::json row;
  for (RopeScaling s : {RopeScaling::none, RopeScaling::linear, RopeScaling::ntk, RopeScaling::yarn}) {
    const RotaryOptions o{10000, s, s == RopeScaling::none ? 1.0 : 4.0, 64};
    const RotaryTable table(T, D, o);
    Tensor a = Tensor::from(q.shape(), q.to_vector()), b = Tensor::from(k.shape(), k.to_vector());
    for (Tensor* x : {&a, &b})
      kernel::rotate_rows(T, 1, D, x->data(), x->stride(), table.cosines.data(), table.sines.data(), 1);
    const Tensor scores = matmul_nt(a, b);
    double apart = 0, spread = 0;
    for (int64_t d = 1 - T; d < T; ++d) {  // the diagonal of keys d places later
      std::vector<double> along;
      for (int64_t t = std::max<int64_t>(0, -d); t < T && t + d < T; ++t)
        along.push_back(static_cast<double>(scores.row(t)[t + d]));
      apart = greater_of(apart, greatest(along) - least(along));
    }
    for (int64_t t = 1; t < T; ++t)
      spread = greater_of(spread, std::fabs(static_cast<double>(scores.row(t)[0]) - plain));
    const std::string name = kNames[static_cast<size_t>(s)];
    row[name + "apart"] = apart / size;
    row[name + "spread"] = spread / size;
    if (s == RopeScaling::none) {
      row["own"] = std::fabs(scores.row(T - 1)[T - 1] - plain) / size;  // distance 0: nothing turned, nothing added
      std::vector<double> curve;
      for (int64_t d = 0; d < T; d += 4) curve.push_back(scores.row(T - 1)[T - 1 - d]);
      row["by distance"] = curve;
    }
  }
  return row;
}

// ALiBi where every score is 0: the logarithm of a weight over the token's own is the penalty.
nlohmann::json slopes(const Work&) {
  const int64_t T = 24, H = 8, D = 4;
  AttentionOptions o;
  o.heads = H, o.alibi = true;
  double apart = 0;
  std::vector<double> found;
  o.look = [&](const Tensor& p) {
    for (int64_t h = 0; h < H; ++h) {
      const float* last = p.row(h * T + T - 1);
      auto penalty = [&](int64_t d) { return std::log(static_cast<double>(last[T - 1 - d]) / last[T - 1]); };
      for (int64_t d = 1; d < T; ++d) apart = greater_of(apart, std::fabs(penalty(d) + std::ldexp(d, -int(h + 1))));
      found.push_back(-penalty(T - 1) / static_cast<double>(T - 1));
    }
  };
  attention(Tensor::zeros(Shape{1, T, 3 * H * D}), o);
  return {{"apart", apart}, {"slopes", found}};
}

}  // namespace

std::vector<Unit> position_checks() {
  return {{"order", 0.2, order}, {"distance", 0.1, distance}, {"slopes", 0.01, slopes}};
}

void say_position_checks(const Rows& rows, Findings& f) {
  auto o = [&](const char* field) { return rows.number("order", field); };
  auto d = [&](const char* field) { return rows.number("distance", field); };
  if (rows.has("order")) {
    Table t({{"tokens changed places in", Align::left}, {"moved, of the largest output", Align::right}});
    t.row({"one block without mask and positions, outputs moved along", number_text(o("no mask"), 3)});
    t.row({"the same with learned positions", number_text(o("no mask, learned"), 3)});
    t.row({"the same with rotary positions", number_text(o("no mask, rotary"), 3)});
    t.row({"one masked block without positions, last output, its prefix shuffled", number_text(o("masked"), 3)});
    t.row({"two masked blocks", number_text(o("masked twice"), 3)});
    f.tables.emplace_back("order", t);
    f.say("P1", number_text(o("no mask"), 3) + "; with positions " + number_text(o("no mask, learned"), 3),
          verdict_of(o("no mask") <= 1e-5 && o("no mask, learned") >= 1e-2 && o("no mask, rotary") >= 1e-2));
    f.say("P1 mask", number_text(o("masked"), 3) + "; two blocks " + number_text(o("masked twice"), 3),
          verdict_of(o("masked") <= 1e-5 && o("masked twice") >= 1e-3));
  }
  if (rows.has("distance")) {
    const std::vector<double> curve = rows.numbers("distance", "by distance");
    Figure figure{
        "rotary: the score of one query and one key by their distance", "tokens apart", "q.k", {}, false, false};
    figure.series.push_back({"q.k", {}, curve});
    for (size_t i = 0; i < curve.size(); ++i) figure.series[0].x.push_back(4.0 * static_cast<double>(i));
    f.figures.push_back(figure);
    bool same = true;
    for (const char* s : kNames)
      same = same && d((s + std::string("apart")).c_str()) <= 1e-5 && d((s + std::string("spread")).c_str()) >= 0.1;
    f.say("P3", number_text(d("apart"), 3) + " of |q| |k|; by distance " + number_text(d("spread"), 3),
          verdict_of(same && d("own") <= 1e-5));
  }
  if (rows.has("slopes")) {
    std::string list;
    for (double s : rows.numbers("slopes", "slopes")) list += (list.empty() ? "" : ", ") + number_text(s, 4);
    f.say("P4", list, verdict_of(rows.number("slopes", "apart") <= 1e-5));
  }
}

}  // namespace bary::lab
