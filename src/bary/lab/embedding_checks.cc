// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <numeric>

#include "bary/lab/embedding.h"
#include "bary/lab/random_tensor.h"
#include "bary/lab/training.h"
#include "bary/tensor/fused.h"
#include "bary/tensor/tap.h"

namespace bary::lab {
namespace {

std::vector<int32_t> random_ids(int64_t n, int64_t V) {
  RandomStream random(1, Purpose::synthetic, 300);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  return ids;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += static_cast<double>(a[c]) * static_cast<double>(b[c]);
  return sum;
}

// "the river bank overflowed", "the loan bank paid": what kind of verb follows `bank` depends on the word before it.
// Verbs of rivers: overflowed, eroded, flooded, dried; of money: lent, paid, charged, closed.
constexpr int32_t kThe = 0, kBank = 1, kFirstSense = 2, kFirstVerb = 10, kWords = 18;
constexpr int64_t kPerSense = 4;

Batches sentences() {
  return [](int64_t step, int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
    RandomStream random(1, Purpose::synthetic, static_cast<uint64_t>(400 + step), static_cast<uint64_t>(s));
    const auto sense = static_cast<int32_t>(random.below(std::size(kSenses)));
    const auto verb = static_cast<int32_t>(random.below(kPerSense) + (sense >= kPerSense ? kPerSense : 0));
    in[0] = kThe, in[1] = kFirstSense + sense, in[2] = kBank;
    out[0] = in[1], out[1] = kBank, out[2] = kFirstVerb + verb;
  };
}

}  // namespace

nlohmann::json one_hot_look_up(const Work&) {
  const int64_t T = 200, V = 1024, C = 128;
  const Tensor table = random_tensor({V, C}, 1);
  Tensor matrix(Shape{1, V, C}), one_hot = Tensor::zeros({1, T, V});
  for (int64_t v = 0; v < V; ++v) std::copy_n(table.row(v), C, matrix.row(v));
  const std::vector<int32_t> ids = random_ids(T, V);
  for (int64_t t = 0; t < T; ++t) one_hot.row(t)[ids[static_cast<size_t>(t)]] = 1;
  const Tensor product = matmul(one_hot, matrix), looked_up = embedding(ids, 1, table);
  int64_t different = 0;
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < C; ++c) different += product.row(t)[c] != looked_up.row(t)[c];
  return {{"different", different}, {"all", T * C}, {"operations", 2 * V * C}, {"copied", C}};
}

nlohmann::json renumbered(const Work&) {
  ModelConfig c = preset("block");
  c.vocab_size = 64, c.n_embd = 32, c.block_size = 24;
  const LanguageModel model(c, 1), other(c, 2);
  copy_parameters(model.parameters(), other.parameters());
  std::vector<int64_t> name(64);  // token v is called name[v] in the other model
  std::iota(name.begin(), name.end(), 0);
  RandomStream random(1, Purpose::synthetic, 301);
  for (size_t i = name.size(); i > 1; --i) std::swap(name[i - 1], name[static_cast<size_t>(random.below(i))]);
  for (const char* matrix : {"transformer.wte.weight", "lm_head.weight", "lm_head.bias"}) {
    const auto from = model.parameters().values_of(*model.parameters().find(matrix));
    const auto to = other.parameters().values_of(*other.parameters().find(matrix));
    const auto width = std::ssize(from) / c.vocab_size;
    for (int64_t v = 0; v < c.vocab_size; ++v)
      std::copy_n(from.begin() + v * width, width, to.begin() + name[static_cast<size_t>(v)] * width);
  }
  other.parameters().changed();
  std::vector<int32_t> ids = random_ids(c.block_size, c.vocab_size), renamed = ids;
  for (int32_t& id : renamed) id = static_cast<int32_t>(name[static_cast<size_t>(id)]);
  const Tensor a = model.logits(ids, 1), b = other.logits(renamed, 1);
  int64_t different = 0;
  for (int64_t t = 0; t < a.rows(); ++t)
    for (int64_t v = 0; v < c.vocab_size; ++v) different += a.row(t)[v] != b.row(t)[name[static_cast<size_t>(v)]];
  return {{"different", different}, {"all", a.shape().volume()}};
}

// The angle is measured without a dot product: 2 atan2(|a/|a| - b/|b||, |a/|a| + b/|b||) (Kahan 2006)
nlohmann::json angles(const Work&) {
  const int64_t pairs = 1000, C = 128;
  const Tensor x = random_tensor({2 * pairs, C}, 2);
  double most = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const float *a = x.row(2 * i), *b = x.row(2 * i + 1);
    const double na = std::sqrt(dot(a, a, C)), nb = std::sqrt(dot(b, b, C));
    double minus = 0, plus = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double u = static_cast<double>(a[c]) / na, v = static_cast<double>(b[c]) / nb;
      minus += (u - v) * (u - v), plus += (u + v) * (u + v);
    }
    const double angle = 2 * std::atan2(std::sqrt(minus), std::sqrt(plus));
    most = greater_of(most, std::fabs(dot(a, b, C) / (na * nb) - std::cos(angle)));
  }
  return {{"apart", most}, {"pairs", pairs}};
}

nlohmann::json bank(const Work& work) {
  Recipe r;
  r.model = preset("block");
  r.model.vocab_size = kWords, r.model.block_size = 3, r.model.n_embd = 32, r.model.init = InitStyle::gpt2;
  r.steps = work.plan.pick<int64_t>(20, 400, 400), r.batch = 32, r.learning_rate = 3e-3;
  const auto model = train_model(r, sentences(), work);
  const int64_t C = r.model.n_embd, n = std::size(kSenses);
  Tensor before(Shape{n, C}), after(Shape{n, C});
  double right = 1;  // least probability, over the sentences, of a verb of the right kind
  for (int64_t s = 0; s < n; ++s) {
    Probe probe;
    probe.look("hook_embed", [&](const Tensor& x) { std::copy_n(x.row(2), C, before.row(s)); });
    probe.look("blocks.0.hook_resid_mid", [&](const Tensor& x) { std::copy_n(x.row(2), C, after.row(s)); });
    const std::array<int32_t, 3> ids{kThe, kFirstSense + static_cast<int32_t>(s), kBank};
    const Tensor p = softmax(model->logits(ids, 1));
    double sum = 0;
    for (int64_t v = 0; v < kPerSense; ++v)
      sum += static_cast<double>(p.row(2)[kFirstVerb + v + (s >= kPerSense ? kPerSense : 0)]);
    right = lesser_of(right, sum);
  }
  std::vector<double> cosines;
  double within = 0, across = 0;
  int64_t row_different = 0, met = 0, same_pairs = 0, other_pairs = 0;
  for (int64_t i = 0; i < n; ++i) {
    row_different += !std::equal(before.row(i), before.row(i) + C, before.row(0));
    for (int64_t j = 0; j < n; ++j) {
      const float *a = after.row(i), *b = after.row(j);
      cosines.push_back(dot(a, b, C) / std::sqrt(dot(a, a, C) * dot(b, b, C)));
      if (i == j) continue;
      const bool same = i / kPerSense == j / kPerSense;
      (same ? within : across) += cosines.back(), ++(same ? same_pairs : other_pairs);
      met += !same && std::equal(a, a + C, b);
    }
  }
  return {{"row_different", row_different},
          {"met", met},
          {"within", within / static_cast<double>(same_pairs)},
          {"across", across / static_cast<double>(other_pairs)},
          {"right", right},
          {"cosines", cosines}};
}

}  // namespace bary::lab
