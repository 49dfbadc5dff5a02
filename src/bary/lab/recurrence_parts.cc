// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "bary/base/clock.h"
#include "bary/lab/random_tensor.h"
#include "bary/lab/recurrence.h"
#include "bary/nn/block.h"
#include "bary/nn/recurrent.h"
#include "bary/tensor/tap.h"
#include "bary/tensor/tape.h"

namespace bary::lab {
namespace {

std::vector<int32_t> random_ids(int64_t n, int64_t vocabulary, uint64_t seed, uint64_t which) {
  RandomStream random(seed, Purpose::synthetic, which);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(vocabulary)));
  return ids;
}

double length_of(const float* v, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(v[i]) * static_cast<double>(v[i]);
  return std::sqrt(squares);
}

LanguageModel fresh(const Network& n, uint64_t seed) {
  ModelConfig c = preset("block");
  c.arch = n.arch, c.block_size = 512;
  LanguageModel model(c, seed);
  if (n.open_forget) {
    for (const Parameter& p : model.parameters().list()) {
      if (!p.name.ends_with("bias_ih_l0")) continue;
      const auto forget = model.parameters().values_of(p).subspan(static_cast<size_t>(c.n_embd), 128);
      for (float& v : forget) v += 1;
    }
    model.parameters().changed();
  }
  return model;
}

}  // namespace

void add_gradient_norms(nlohmann::json& row, const LanguageModel& model,
                        const std::vector<std::vector<int32_t>>& sequences, int64_t longest) {
  const int64_t B = std::ssize(sequences);
  std::vector<double> lengths, norms;
  for (int64_t T : kLengths) {
    if (T > longest) break;
    std::vector<int32_t> ids, targets(static_cast<size_t>(B * T), -1);
    for (int64_t b = 0; b < B; ++b) {
      const auto& s = sequences[static_cast<size_t>(b)];
      ids.insert(ids.end(), s.begin(), s.begin() + T);
      targets[static_cast<size_t>((b + 1) * T - 1)] = s[static_cast<size_t>(T)];
    }
    Tensor x;  // (B,T,C)
    Probe probe;
    probe.look("hook_embed", [&x](const Tensor& e) { x = e; });
    Tape tape;
    tape.backward(model.loss(ids, targets, B).loss);
    double sum = 0;
    for (int64_t b = 0; b < B && x.has_grad(); ++b) sum += length_of(x.cotangent() + b * T * x.stride(), x.channels());
    lengths.push_back(static_cast<double>(T)), norms.push_back(sum / static_cast<double>(B));
  }
  row["lengths"] = lengths, row["norms"] = norms;
}

double reach(const std::vector<double>& lengths, const std::vector<double>& norms) {
  const size_t n = std::min(lengths.size(), norms.size());
  if (n == 0) return std::nan("");
  const double least = kReach * norms[0];
  size_t last = 0;
  for (size_t i = 0; i < n; ++i)
    if (norms[i] >= least) last = i;
  if (last + 1 == n || !(norms[last + 1] > 0)) return lengths[last];
  const double share = std::log(norms[last] / least) / std::log(norms[last] / norms[last + 1]);
  return lengths[last] * std::pow(lengths[last + 1] / lengths[last], share);
}

nlohmann::json at_start(const Network& n, uint64_t seed, const Work& work) {
  const LanguageModel model = fresh(n, seed);
  const int64_t V = model.config().vocab_size;
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t b = 0; b < work.plan.pick<int64_t>(2, 16, 16); ++b)
    sequences.push_back(random_ids(512, V, seed, static_cast<uint64_t>(b)));
  nlohmann::json row;
  add_gradient_norms(row, model, sequences, work.plan.pick<int64_t>(16, 256, 256));
  std::vector<int32_t> ids(sequences[0].begin(), sequences[0].begin() + kTo), other = ids;
  other[kFrom - 1] = static_cast<int32_t>((other[kFrom - 1] + V / 2) % V);
  const Tensor a = model.hidden(ids, 1), b = model.hidden(other, 1);
  std::vector<double> tokens, left;
  for (int64_t t = kFrom; t <= kTo; t += t < 50 ? 1 : 25) {
    std::vector<float> d(static_cast<size_t>(a.channels()));
    for (size_t c = 0; c < d.size(); ++c) d[c] = a.row(t - 1)[c] - b.row(t - 1)[c];
    tokens.push_back(static_cast<double>(t));
    left.push_back(length_of(d.data(), std::ssize(d)) / length_of(a.row(t - 1), a.channels()));
  }
  row["tokens"] = tokens, row["left"] = left, row["at the end"] = left.back();
  return row;
}

nlohmann::json times(bool lstm, const Work& work) {
  Parameters p(1);
  const Scope scope{&p, "", "", InitStyle::pytorch, 1};
  const RecurrentLayer layer(scope / "lstm", Cell::lstm, kTimedWidth, kTimedWidth);
  const Block block(scope / "block", BlockConfig{});
  Buffer gradients(p.size());
  auto best_ms = [&](int64_t B, int64_t T) {
    double best = HUGE_VAL;
    const int64_t repeats = work.plan.pick<int64_t>(1, 5, 9);
    for (int64_t i = 0; i < repeats; ++i) {
      Tensor x = random_tensor({B, T, kTimedWidth}, 1);
      x.require_grad();
      const Stopwatch watch;
      Tape tape(gradients.data(), p.size());
      tape.backward(sum(lstm ? layer(x).y : block(x, {}, nullptr)));
      best = std::min(best, watch.seconds() * 1e3);
    }
    return best / static_cast<double>(B * T);
  };
  std::vector<double> lengths, alone, together;
  const int64_t last = work.plan.pick<int64_t>(64, 1024, 2048);
  for (int64_t T = 16; T <= last; T *= 2) {
    lengths.push_back(static_cast<double>(T));
    alone.push_back(best_ms(1, T)), together.push_back(best_ms(16, T));
    work.progress(static_cast<double>(T) / static_cast<double>(last));
  }
  return {{"lengths", lengths}, {"alone", alone}, {"together", together}};
}

}  // namespace bary::lab
