// SPDX-License-Identifier: Apache-2.0
// The same numbers as PyTorch's, from the same weights: its outputs are stored in parity_values.h, inputs and weights
// are made here from whole numbers as tools/reference/lab_parity.py makes them.
#include <cmath>

#include "bary/lab/list.h"
#include "bary/lab/parity_values.h"
#include "bary/nn/attention.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

void make(std::span<float> out, uint32_t which, double scale) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t h = static_cast<uint32_t>(i) * 2654435761u + which * 40503u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    out[i] = static_cast<float>((static_cast<double>(h >> 16) - 32768) / 32768 * scale);
  }
}

Tensor made(Shape shape, uint32_t which, double scale) {
  std::vector<float> values(static_cast<size_t>(shape.volume()));
  make(values, which, scale);
  return Tensor::from(shape, values);
}

nlohmann::json compared(const std::vector<float>& ours, std::span<const float> theirs) {
  double most = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double a = static_cast<double>(ours[i]), b = static_cast<double>(theirs[i]);
    most = std::isnan(a) ? HUGE_VAL : std::max(most, std::fabs(a - b)), size += std::fabs(b);
  }
  return {{"apart", most}, {"size", size / static_cast<double>(ours.size())}};
}

nlohmann::json multihead(const Work&) {
  AttentionConfig c;
  c.n_embd = kParityC, c.n_head = c.n_kv_head = kParityHeads, c.d_head = kParityC / kParityHeads;
  c.pos = Position::none, c.bias = false;
  Parameters p(0);
  const Attention attention(Scope{&p, "attn", "attn"}, c);
  make({p.values() + p.find("attn.q_proj.weight")->offset, size_t{3} * kParityC * kParityC}, 2, 0.5);  // q, k, v in one
  make(p.values_of(*p.find("attn.out_proj.weight")), 3, 0.046875);
  p.changed();
  return compared(attention(made({1, kParityT, kParityC}, 1, 2), Pass{}, nullptr).to_vector(), kMultiheadAttention);
}

nlohmann::json dot_product(const Work&) {
  const int64_t D = kParityC / kParityHeads;
  std::vector<Tensor> parts;  // (1,H,T,D) as PyTorch has them, then side by side as ours
  for (uint32_t i : {0u, 1u, 2u})
    parts.push_back(merge_heads(made({kParityHeads, kParityT, D}, 4 + i, i == 2 ? 0.5 : 2), kParityHeads));
  AttentionOptions o;
  o.heads = kParityHeads;
  return compared(split_heads(attention(concat(parts), o), kParityHeads).to_vector(), kDotProductAttention);
}

Findings judge(const Rows& rows, const Plan&) {
  Findings f;
  Table t({{"against", Align::left}, {"max |difference|", Align::right}, {"mean |output|", Align::right}});
  t.row({"nn.MultiheadAttention, published", "1.79e-07", "0.159"});
  for (auto [key, name] :
       {std::pair{"multihead", "nn.MultiheadAttention"}, {"dot product", "scaled_dot_product_attention"}}) {
    if (!rows.has(key)) continue;
    const double apart = rows.number(key, "apart");
    t.row({name, number_text(apart, 3), number_text(rows.number(key, "size"), 3)});
    f.say(std::string("B11 ") + key, number_text(apart, 3), verdict_of(apart <= 4e-7));
  }
  f.tables.emplace_back("against stored outputs of PyTorch 2.15, weights copied", t);
  return f;
}

}  // namespace

Experiment parity() {
  Experiment e;
  e.name = "parity";
  e.question = "Is it the same function as PyTorch's?";
  const std::string rule = "no output differs by more than 4e-7, where the mean output is 0.16";
  e.claims = {{"B11 multihead", "The chapter's head gives the numbers of nn.MultiheadAttention.", "1.79e-07", rule},
              {"B11 dot product", "And of scaled_dot_product_attention.", "1.79e-07", rule}};
  e.units = [](const Plan&) {
    return std::vector<Unit>{{"multihead", 0.1, multihead}, {"dot product", 0.1, dot_product}};
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
