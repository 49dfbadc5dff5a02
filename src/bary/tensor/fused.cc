// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/fused.h"

#include <algorithm>
#include <functional>
#include <map>

#include "bary/base/parallel.h"
#include "bary/kernel/loss.h"
#include "bary/kernel/norm.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"
#include "bary/tensor/weight.h"

namespace bary {
namespace {

void check_bias(const char* op, const Tensor& bias, const Tensor& w) {
  BARY_CHECK(!bias.defined() || bias.shape() == Shape{w.dim(0)}, "{}: the bias is {}, the weight {}; expected ({})", op,
             bias.defined() ? bias.shape().str() : "", w.shape().str(), w.dim(0));
}
void check_onto(const char* op, const Tensor& onto, const Tensor& y) {
  BARY_CHECK(!onto.defined() || onto.shape() == y.shape(), "{}: the residual is {}, the product {}; they must be equal",
             op, onto.defined() ? onto.shape().str() : "", y.shape().str());
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& onto) {
  BARY_CHECK(w.shape().rank() == 2 && w.dim(1) == x.channels(), "linear: x has {} channels, the weight is {}",
             x.channels(), w.shape().str());
  Tensor y(x.shape().with_channels(w.dim(0)));
  check_bias("linear", bias, w);
  check_onto("linear", onto, y);
  kernel::Epilogue e;
  if (bias.defined()) e.bias = bias.data();
  if (onto.defined()) e.onto = onto.data(), e.onto_ld = onto.stride();
  Weight(w).forward(x, y, e);
  record(
      y,
      [=] {
        Weight(w).backward_weight(y.cotangent(), y.stride(), x, bias);
        if (auto g = x.grad()) Weight(w).backward_input(y.cotangent(), y.stride(), x.rows(), g);
        if (onto.defined()) y.pass_gradient_to(onto);
      },
      x, w, bias, onto);
  return y;
}

Tensor mlp(const Tensor& x, const MlpWeights& w, Activation act, const Tensor& onto) {
  BARY_CHECK(w.up.dim(1) == x.channels() && w.down.dim(1) == w.up.dim(0),
             "mlp: x has {} channels, up is {}, down is {}", x.channels(), w.up.shape().str(), w.down.shape().str());
  Tensor hidden(x.shape().with_channels(w.up.dim(0))), y(x.shape().with_channels(w.down.dim(0))), derivative;
  check_bias("mlp", w.up_bias, w.up);
  check_bias("mlp", w.down_bias, w.down);
  check_onto("mlp", onto, y);
  kernel::Epilogue up, down;
  up.activation = act;
  if (w.up_bias.defined()) up.bias = w.up_bias.data();
  if (Tape::active()) {
    derivative = Tensor(hidden.shape());
    up.derivative = derivative.data();
    up.derivative_ld = derivative.stride();
  }
  if (w.down_bias.defined()) down.bias = w.down_bias.data();
  if (onto.defined()) down.onto = onto.data(), down.onto_ld = onto.stride();
  Weight(w.up).forward(x, hidden, up);
  Weight(w.down).forward(hidden, y, down);
  record(
      y,
      [=] {
        Weight(w.down).backward_weight(y.cotangent(), y.stride(), hidden, w.down_bias);
        // d hidden = (dy down) act', written over hidden, which nobody needs any more
        GradientSlot dh{hidden.data(), hidden.stride(), false};
        Weight(w.down).backward_input(y.cotangent(), y.stride(), hidden.rows(), dh, &derivative);
        Weight(w.up).backward_weight(dh.data, dh.stride, x, w.up_bias);
        if (auto g = x.grad()) Weight(w.up).backward_input(dh.data, dh.stride, x.rows(), g);
        if (onto.defined()) y.pass_gradient_to(onto);
      },
      x, w.up, w.up_bias, w.down, w.down_bias, onto);
  return y;
}

namespace {

constexpr int64_t kRowGrain = 32;  // rows a thread takes at a time where rows are cheap

template <bool kLayer>
Tensor normalise(const Tensor& x, const Tensor& w, const Tensor& b, float eps) {
  BARY_CHECK(w.shape().volume() == x.channels(), "{}: x has {} channels, the weight {}",
             kLayer ? "layer_norm" : "rms_norm", x.channels(), w.shape().str());
  BARY_CHECK(!b.defined() || b.shape() == w.shape(), "layer_norm: the weight is {}, the bias {}; they must be equal",
             w.shape().str(), b.defined() ? b.shape().str() : "");
  Tensor y(x.shape()), statistics(Shape{2, x.rows()});
  auto rows_of = [=](int64_t begin, int64_t end) {
    kernel::NormRows r{end - begin,
                       x.channels(),
                       x.row(begin),
                       x.stride(),
                       w.data(),
                       b.defined() ? b.data() : nullptr,
                       statistics.row(0) + begin,
                       statistics.row(1) + begin,
                       eps};
    return r;
  };
  parallel_for(x.rows(), kRowGrain, [&](int64_t begin, int64_t end) {
    (kLayer ? kernel::layer_norm : kernel::rms_norm)(rows_of(begin, end), y.row(begin), y.stride());
  });
  record(
      y,
      [=] {
        auto gx = x.grad(), gw = w.grad().cleared(1), gb = b.grad().cleared(1);
        Tensor unwanted;
        if (!gx) {
          unwanted = Tensor(x.shape());
          gx = {unwanted.data(), unwanted.stride(), false};
        }
        auto back = [&](int64_t begin, int64_t end, float* dw, float* db) {
          kernel::NormGradient g{gx.data + begin * gx.stride, gx.stride, gx.accumulate, dw, db};
          (kLayer ? kernel::layer_norm_backward : kernel::rms_norm_backward)(
              rows_of(begin, end), y.cotangent() + begin * y.stride(), y.stride(), g);
        };
        const int64_t rows = x.rows(), group = Tape::active()->group_of(rows);
        if (!Tape::active()->grouped()) return back(0, rows, gw.data, gb.data);
        Tensor sums = Tensor::zeros({2 * ((rows + group - 1) / group), x.channels()});
        parallel_for(sums.rows() / 2, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            back(i * group, std::min(rows, (i + 1) * group), gw ? sums.row(2 * i) : nullptr,
                 gb ? sums.row(2 * i + 1) : nullptr);
        });
        for (int64_t i = 0; i < sums.rows() / 2; ++i) {
          if (gw) kernel::add_rows(1, x.channels(), sums.row(2 * i), 0, gw.data, 0);
          if (gb) kernel::add_rows(1, x.channels(), sums.row(2 * i + 1), 0, gb.data, 0);
        }
      },
      x, w, b);
  return y;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, float eps) {
  return normalise<true>(x, w, b, eps);
}
Tensor rms_norm(const Tensor& x, const Tensor& w, float eps) { return normalise<false>(x, w, {}, eps); }

namespace {

// Adds rows of gradients, `stride` apart, to to(where(r)), rows of a table, group by group of the tape.
struct GradientRows {
  const float* data;
  int64_t stride, count, channels;
};
using TableRow = std::function<float*(int64_t row)>;
void scatter_rows(const GradientRows& y, const TableRow& to, const std::function<int64_t(int64_t)>& where) {
  const int64_t rows = y.count, C = y.channels, group = Tape::active()->group_of(rows);
  auto gradient = [&](int64_t r) { return y.data + r * y.stride; };
  if (!Tape::active()->grouped()) {
    for (int64_t r = 0; r < rows; ++r) kernel::add_rows(1, C, gradient(r), 0, to(where(r)), 0);
    return;
  }
  Tensor sums(Shape{group, C});
  for (int64_t first = 0; first < rows; first += group) {
    std::map<int64_t, int64_t> places;  // row of the table -> row of sums
    for (int64_t r = first; r < std::min(rows, first + group); ++r) {
      const auto [at, fresh] = places.try_emplace(where(r), static_cast<int64_t>(places.size()));
      if (fresh) std::fill_n(sums.row(at->second), C, 0.0f);
      kernel::add_rows(1, C, gradient(r), 0, sums.row(at->second), 0);
    }
    for (const auto& [row, from] : places) kernel::add_rows(1, C, sums.row(from), 0, to(row), 0);
  }
}

// Where gradients of the rows of a table go that is looked up in; empty: nobody wants them.
TableRow table_rows(const Tensor& table) {
  RowSums* apart = table.defined() && table.is_parameter() ? Tape::active()->look_ups() : nullptr;
  if (apart && table.needs_grad()) {
    const int64_t offset = table.parameter_offset(), C = table.channels();
    const int use = Tape::active()->look_up_use(offset);
    return [=](int64_t row) { return apart->row(offset, use, row, C); };
  }
  const GradientSlot slot = table.defined() ? table.grad().cleared(table.rows()) : GradientSlot{};
  if (!slot) return {};
  return [slot](int64_t row) { return slot.data + row * slot.stride; };
}

void check_embedding(std::span<const int32_t> ids, const Tensor& tokens, const EmbeddingOptions& o, int64_t T) {
  if (o.positions.defined()) {
    BARY_CHECK(o.positions.channels() == tokens.channels(),
               "embedding: {} channels for tokens, {} for positions; they must be equal", tokens.channels(),
               o.positions.channels());
    BARY_CHECK(o.first >= 0 && o.first + T <= o.positions.dim(0),
               "embedding: position {} asked for, the table ends at {}; shorten the text or "
               "use a model with a longer context",
               o.first + T - 1, o.positions.dim(0) - 1);
  }
  for (size_t r = 0; r < ids.size(); ++r)
    BARY_CHECK(ids[r] >= 0 && ids[r] < tokens.dim(0),
               "embedding: token id {} at position {}, the vocabulary has {}; was the text "
               "encoded with another tokenizer?",
               ids[r], r, tokens.dim(0));
}

}  // namespace

Tensor embedding(std::span<const int32_t> ids, int64_t B, const Tensor& tokens, const EmbeddingOptions& o) {
  const int64_t n = static_cast<int64_t>(ids.size()), T = B > 0 ? n / B : 0, C = tokens.channels();
  BARY_CHECK(B > 0 && T * B == n, "embedding: {} ids do not make {} sequences of one length", n, B);
  check_embedding(ids, tokens, o, T);
  Tensor y(Shape{B, T, C});
  for (int64_t r = 0; r < n; ++r) {
    const float* token = tokens.row(ids[static_cast<size_t>(r)]);
    for (int64_t c = 0; c < C; ++c) y.row(r)[c] = token[c] * o.scale;
    if (o.positions.defined()) kernel::add_rows(1, C, o.positions.row(o.first + r % T), 0, y.row(r), 0);
  }
  record(
      y,
      [=, kept = std::vector<int32_t>(ids.begin(), ids.end())] {
        GradientRows g{y.cotangent(), y.stride(), n, C};
        if (const TableRow to = table_rows(o.positions))
          scatter_rows(g, to, [&](int64_t r) { return o.first + r % T; });
        const TableRow to = table_rows(tokens);
        Tensor scaled;
        if (to && o.scale != 1) {
          scaled = Tensor(y.shape());
          for (int64_t r = 0; r < n; ++r)
            for (int64_t c = 0; c < C; ++c) scaled.row(r)[c] = g.data[r * g.stride + c] * o.scale;
          g.data = scaled.data();
        }
        if (to) scatter_rows(g, to, [&](int64_t r) { return kept[static_cast<size_t>(r)]; });
      },
      tokens, o.positions);
  return y;
}

Tensor prefix_mean(const Tensor& x, Tensor running, int64_t first) {
  BARY_CHECK(x.shape().rank() == 3, "prefix_mean: shape {}, expected (B,T,C)", x.shape().str());
  BARY_CHECK(!(running.defined() && Tape::active()), "prefix_mean: a running sum has no gradient; use whole sequences");
  int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2);
  BARY_CHECK(!running.defined() || running.shape() == (Shape{B, C}),
             "prefix_mean: the running sums are {}, expected ({},{})", running.defined() ? running.shape().str() : "",
             B, C);
  Tensor y(x.shape()), sums = running.defined() ? running : Tensor::zeros({B, C});
  for (int64_t b = 0; b < B; ++b)
    kernel::prefix_mean(T, C, first, x.row(b * T), x.stride(), sums.row(b), y.row(b * T), y.stride());
  record(
      y,
      [=] {
        auto g = x.grad();
        for (int64_t b = 0; g && b < B; ++b)
          kernel::prefix_mean_backward(T, C, y.cotangent() + b * T * y.stride(), y.stride(), g.data + b * T * g.stride,
                                       g.stride, g.accumulate);
      },
      x);
  return y;
}

constexpr int64_t kLogitRows = 256;

LossSum linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& bias, std::span<const int32_t> targets,
                             const LossOptions& options) {
  const int64_t rows = x.rows(), V = w.dim(0);
  const float weight = options.weight, smoothing = options.smoothing;
  BARY_CHECK(smoothing >= 0 && smoothing < 1, "linear_cross_entropy: a label smoothing of {}; it must lie in [0,1)",
             smoothing);
  BARY_CHECK(w.shape().rank() == 2 && V > 0 && w.dim(1) == x.channels(),
             "linear_cross_entropy: x has {} channels, the weight "
             "is {}",
             x.channels(), w.shape().str());
  check_bias("linear_cross_entropy", bias, w);
  BARY_CHECK(static_cast<int64_t>(targets.size()) == rows, "linear_cross_entropy: {} targets for {} rows",
             targets.size(), rows);
  for (int32_t t : targets)
    BARY_CHECK(t < V,
               "linear_cross_entropy: target {}, the vocabulary has {}; was the text encoded with another tokenizer?",
               t, V);
  const bool recording = Tape::active() && (x.needs_grad() || w.needs_grad() || bias.needs_grad());
  BARY_CHECK(!recording || weight != 0, "linear_cross_entropy: a weight of 0 has no gradient; leave the loss out");
  LossSum out;
  out.loss = Tensor(Shape{1});
  std::vector<double> losses(static_cast<size_t>(rows));
  Tensor dx = recording ? Tensor(x.shape()) : Tensor();
  // Depth first, the logits of a chunk stay in the second-level cache. Layer by layer a chunk is whole groups of rows,
  // as many as make reading a large weight worth while.
  const bool grouped = recording && Tape::active()->grouped();
  const int64_t group = grouped ? Tape::active()->group_of(rows) : 1;
  const int64_t chunk = grouped ? std::max(group, kLogitRows / std::max<int64_t>(group, 1) * group)
                                : std::clamp<int64_t>((int64_t{1} << 17) / V / 16 * 16, 16, 128);
  auto do_chunk = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r += chunk) {
      int64_t n = std::min(chunk, end - r);
      Tensor logits(Shape{n, V});
      kernel::Epilogue e;
      if (bias.defined()) e.bias = bias.data();
      Weight(w).forward_rows(x.row(r), x.stride(), n, logits, e);
      parallel_for(n, std::max<int64_t>(1, (int64_t{1} << 15) / V), [&](int64_t first, int64_t last) {
        kernel::cross_entropy_rows(last - first, V, logits.row(first), logits.stride(), targets.data() + r + first,
                                   recording ? weight : 0.0f, losses.data() + r + first, smoothing);
      });
      if (!recording) continue;
      Weight(w).backward_weight_rows({logits.data(), x.row(r), logits.stride(), x.stride(), n, group}, bias);
      Weight(w).backward_input(logits.data(), logits.stride(), n, {dx.row(r), dx.stride(), false});
    }
  };
  if (recording) {
    do_chunk(0, rows);  // weight gradients are one chain over all rows
  } else {
    parallel_for(rows, chunk, do_chunk);
  }
  const int64_t sequences = x.shape().rank() == 3 ? x.dim(0) : 1,
                T = std::max<int64_t>(rows / std::max<int64_t>(sequences, 1), 1);
  out.sequences.resize(static_cast<size_t>(sequences));
  for (int64_t r = 0; r < rows; ++r) {
    out.sequences[static_cast<size_t>(r / T)] += losses[static_cast<size_t>(r)];
    out.count += targets[static_cast<size_t>(r)] >= 0;
  }
  for (double s : out.sequences) out.sum += s;
  out.loss.data()[0] = static_cast<float>(weight * out.sum);
  record(
      out.loss,
      [loss = out.loss, x, dx] {
        BARY_CHECK(loss.cotangent()[0] == 1.0f,
                   "linear_cross_entropy: backward with seed {}; only 1 is accepted (pass `weight`)",
                   loss.cotangent()[0]);
        auto g = x.grad();
        for (int64_t r = 0; g && r < x.rows(); ++r) {
          if (g.accumulate) {
            kernel::add_rows(1, x.channels(), dx.row(r), 0, g.data + r * g.stride, 0);
          } else {
            std::copy_n(dx.row(r), x.channels(), g.data + r * g.stride);
          }
        }
      },
      x, w, bias);
  return out;
}

}  // namespace bary
