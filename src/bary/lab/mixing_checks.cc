// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "bary/lab/mixing.h"
#include "bary/lab/random_tensor.h"
#include "bary/model/language_model.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary::lab {
namespace {

constexpr int64_t kT = kPatternLength, kC = 32, kV = 64;
using Part = std::function<Tensor(const Tensor&)>;

BlockConfig block_config(Mask mask = Mask::causal) {
  BlockConfig c;
  c.attention.n_embd = kC, c.attention.d_head = kC / 4, c.attention.mask = mask, c.attention.pos = Position::none;
  c.mlp_width = 4 * kC;
  return c;
}

// |d (u . y_t) / d x_j| for a random direction u of output row t: zero where row t does not depend on row j
std::vector<double> jacobian_pattern(const Part& part, int64_t channels) {
  std::vector<double> map;
  for (int64_t t = 0; t < kT; ++t) {
    Tape tape;
    Tensor x = random_tensor({1, kT, channels}, 1);
    x.require_grad();
    const Tensor y = part(x);
    Tensor direction = Tensor::zeros(y.shape());
    const Tensor u = random_tensor({1, 1, y.channels()}, 2);
    std::copy_n(u.data(), y.channels(), direction.row(t));
    tape.backward(sum(y * direction));
    const std::vector<float> g = x.grad_vector();
    for (int64_t j = 0; j < kT; ++j) {
      const float* row = g.data() + j * channels;
      map.push_back(std::sqrt(std::inner_product(row, row + channels, row, 0.0)));
    }
  }
  return map;
}

std::vector<int64_t> permutation(int64_t n, uint64_t which) {
  std::vector<int64_t> p(static_cast<size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  RandomStream random(1, Purpose::synthetic, 100, which);
  for (size_t i = p.size(); i > 1; --i) std::swap(p[i - 1], p[static_cast<size_t>(random.below(i))]);
  return p;
}

Tensor permuted(const Tensor& x, const std::vector<int64_t>& p) {
  Tensor y(x.shape());
  for (size_t t = 0; t < p.size(); ++t) std::copy_n(x.row(p[t]), x.channels(), y.row(static_cast<int64_t>(t)));
  return y;
}

bool same_bits(const float* a, const float* b, int64_t n) { return std::equal(a, a + n, b); }

ModelConfig small_model(int64_t layers, Position pos, Mixer mixer = Mixer::attention) {
  ModelConfig c = preset("block");
  c.n_layer = layers, c.n_embd = kC, c.vocab_size = kV, c.block_size = 24, c.pos = pos, c.mixer = mixer;
  return c;
}

std::vector<int32_t> random_text(int64_t T) {
  RandomStream random(1, Purpose::synthetic, 200);
  std::vector<int32_t> ids(static_cast<size_t>(T));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(kV));
  return ids;
}

}  // namespace

nlohmann::json jacobian_patterns(const Work&) {
  Parameters parameters(1);
  const Scope root{&parameters, "", ""};
  const BlockConfig c = block_config();
  const Norm norm(root / "norm", kC, NormKind::layer, true, 1e-5);
  const Attention attend(root / "attn", c.attention);
  const Mlp mlp(root / "mlp", c);
  const Block block(root / "block", c);
  const Linear head(root / "head", kC, kV);
  const Tensor table = random_tensor({1, kV, kC}, 3), onto = random_tensor({1, kT, kC}, 4);
  const Part parts[] = {
      [&](const Tensor& x) { return matmul(x, table) + onto; },  // rows x of V numbers, one-hot or not
      [&](const Tensor& x) { return norm(x); },
      [&](const Tensor& x) { return attend(x, {}, nullptr); },
      [&](const Tensor& x) { return mlp(x, {}); },
      [&](const Tensor& x) { return block(x, {}, nullptr); },
      [&](const Tensor& x) { return head(x); }};
  nlohmann::json rows = nlohmann::json::object();
  for (size_t i = 0; i < std::size(parts); ++i) {
    const std::vector<double> map = jacobian_pattern(parts[i], i == 0 ? kV : kC);
    int64_t above = 0, below = 0, diagonal = 0;  // elements that are not zero
    for (int64_t t = 0; t < kT; ++t)
      for (int64_t j = 0; j < kT; ++j)
        if (map[static_cast<size_t>(t * kT + j)] != 0) ++(j > t ? above : j < t ? below : diagonal);
    rows[kPatternParts[i]] = {{"map", map}, {"above", above}, {"below", below}, {"diagonal", diagonal}};
  }
  return rows;
}

// Changes each token of a text in turn; counts rows of logits, other than its own, that are not the same to the bit.
nlohmann::json other_tokens(const Work&) {
  nlohmann::json row = nlohmann::json::object();
  for (Mixer mixer : {Mixer::none, Mixer::attention}) {
    const LanguageModel model(small_model(2, Position::learned, mixer), 1);
    const std::vector<int32_t> ids = random_text(24);
    const Tensor before = model.logits(ids, 1);
    int64_t earlier = 0, later = 0;
    for (size_t j = 0; j < ids.size(); ++j) {
      std::vector<int32_t> other = ids;
      other[j] = (other[j] + 1) % kV;
      const Tensor after = model.logits(other, 1);
      for (int64_t t = 0; t < before.rows(); ++t) {
        if (same_bits(before.row(t), after.row(t), kV)) continue;
        if (t < static_cast<int64_t>(j)) ++earlier;
        if (t > static_cast<int64_t>(j)) ++later;
      }
    }
    row[mixer == Mixer::none ? "without" : "with"] = {{"earlier", earlier}, {"later", later}};
  }
  row["pairs"] = 24 * 23 / 2;
  return row;
}

// f(a + b) + f(0) = f(a) + f(b) for what only moves and mixes; relative to the largest of f(a + b)
nlohmann::json moved_not_reshaped(const Work&) {
  Parameters parameters(1);
  const Scope root{&parameters, "", ""};
  const BlockConfig c = block_config();
  const Attention attend(root / "attn", c.attention);
  const Mlp mlp(root / "mlp", c);
  const Tensor a = random_tensor({1, kT, kC}, 1), b = random_tensor({1, kT, kC}, 2), zero = Tensor::zeros(a.shape());
  auto bent = [&](const Part& f) {
    const Tensor whole = f(a + b);
    return largest_difference(whole + f(zero), f(a) + f(b)) / largest(whole);
  };
  const Part attention = [&](const Tensor& x) { return attend(x, {}, nullptr); };
  nlohmann::json row = {{"attention", bent(attention)}, {"mlp", bent([&](const Tensor& x) { return mlp(x, {}); })}};
  Tensor pattern;  // of a, as (heads, T, T)
  Probe probe;
  probe.edit("attn.hook_pattern", [&](const Tensor& p) { return pattern.defined() ? pattern : pattern = p; });
  attention(a);
  row["held"] = bent(attention);
  return row;
}

nlohmann::json layer_norm_company(const Work&) {
  const int64_t T = 64;
  const Tensor w = random_tensor({kC}, 1), b = random_tensor({kC}, 2), x = random_tensor({1, T, kC}, 3);
  const Tensor inference = layer_norm(x, w, b);
  int64_t different = 0;
  {
    Tape tape;  // as in training
    Tensor marked = random_tensor({1, T, kC}, 3);
    marked.require_grad();
    const Tensor training = layer_norm(marked, w, b);
    for (int64_t t = 0; t < T; ++t) different += !same_bits(training.row(t), inference.row(t), kC);
  }
  for (int64_t n : {1, 2, 7, 33}) {  // each row in shorter texts
    for (int64_t first = 0; first + n <= T; first += n) {
      Tensor part(Shape{1, n, kC});
      for (int64_t t = 0; t < n; ++t) std::copy_n(x.row(first + t), kC, part.row(t));
      const Tensor y = layer_norm(part, w, b);
      for (int64_t t = 0; t < n; ++t) different += !same_bits(y.row(t), inference.row(first + t), kC);
    }
  }
  // The first row normalised by each channel's mean and variance over n rows
  auto batch_norm = [&](int64_t n, int64_t c) {
    double mean = 0, square = 0;
    for (int64_t t = 0; t < n; ++t) {
      const double v = static_cast<double>(x.row(t)[c]);
      mean += v / static_cast<double>(n), square += v * v / static_cast<double>(n);
    }
    return (static_cast<double>(x.row(0)[c]) - mean) / std::sqrt(square - mean * mean + 1e-5);
  };
  double moved = 0;
  for (int64_t c = 0; c < kC; ++c) moved = std::max(moved, std::fabs(batch_norm(8, c) - batch_norm(T, c)));
  return {{"different", different}, {"batch_norm_moved", moved}};
}

nlohmann::json equivariance(const Work&) {
  const Tensor x = random_tensor({1, kT, kC}, 1), places = random_tensor({1, kT, kC}, 2);
  auto apart = [&](Mask mask, const Tensor* positions) {
    Parameters parameters(1);
    const Attention attend(Scope{&parameters, "", ""}, block_config(mask).attention);
    auto f = [&](const Tensor& rows) { return attend(positions ? rows + *positions : rows, {}, nullptr); };
    const Tensor y = f(x);
    std::vector<double> all;
    for (uint64_t i = 0; i < 20; ++i) {
      const auto p = permutation(kT, i);
      all.push_back(largest_difference(f(permuted(x, p)), permuted(y, p)) / largest(y));
    }
    return all;
  };
  return {{"plain", apart(Mask::full, nullptr)},
          {"masked", apart(Mask::causal, nullptr)},
          {"positions", apart(Mask::full, &places)}};
}

nlohmann::json bag_of_words(const Work&) {
  auto moved = [](int64_t layers, Position pos) {
    const LanguageModel model(small_model(layers, pos), 1);
    const std::vector<int32_t> ids = random_text(16);
    auto last = [&](const std::vector<int32_t>& text) {
      const Tensor y = model.logits(text, 1);
      Tensor row(Shape{1, 1, kV});
      std::copy_n(y.row(y.rows() - 1), kV, row.data());
      return row;
    };
    const Tensor y = last(ids);
    std::vector<double> all;
    for (uint64_t i = 0; i < 20; ++i) {
      const auto p = permutation(std::ssize(ids) - 1, i);
      std::vector<int32_t> other = ids;
      for (size_t t = 0; t < p.size(); ++t) other[t] = ids[static_cast<size_t>(p[t])];
      all.push_back(largest_difference(last(other), y) / largest(y));
    }
    return all;
  };
  return {{"one layer", moved(1, Position::none)},
          {"two layers", moved(2, Position::none)},
          {"one layer with positions", moved(1, Position::learned)}};
}

}  // namespace bary::lab
