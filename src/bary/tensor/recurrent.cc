// SPDX-License-Identifier: Apache-2.0
#include "bary/tensor/recurrent.h"

#include <algorithm>
#include <memory>

#include "bary/base/parallel.h"
#include "bary/kernel/gemm.h"
#include "bary/kernel/rows.h"
#include "bary/tensor/tape.h"
#include "bary/tensor/weight.h"

namespace bary {

int64_t check_recurrent(const char* op, const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                        const RecurrentOptions& o) {
  BARY_CHECK(x.shape().rank() == 3 && x.rows() > 0, "{}: x is {}, expected (B,T,C) with at least one step", op,
             x.shape().str());
  const int64_t B = x.dim(0), T = x.dim(1), C = x.dim(2), G = kernel::gates_of(o.cell), H = w.weight_hh.channels();
  BARY_CHECK(w.weight_ih.shape() == (Shape{G * H, C}) && w.weight_hh.shape() == (Shape{G * H, H}),
             "{}: x has {} channels, weight_ih is {} and weight_hh {}; {} gates of {} units need ({},{}) and ({},{})",
             op, C, w.weight_ih.shape().str(), w.weight_hh.shape().str(), G, H, G * H, C, G * H, H);
  for (const Tensor& bias : {w.bias_ih, w.bias_hh})
    BARY_CHECK(!bias.defined() || bias.shape() == Shape{G * H}, "{}: a bias is {}, expected ({})", op,
               bias.shape().str(), G * H);
  BARY_CHECK(o.cell == Cell::lstm || !first.c.defined(),
             "{}: a cell state c came, which only an lstm has; leave it undefined", op);
  for (const Tensor& state : {first.h, first.c})
    BARY_CHECK(!state.defined() || state.shape() == (Shape{B, H}), "{}: the first state is {}, expected ({},{})", op,
               state.shape().str(), B, H);
  BARY_CHECK(o.truncate >= 0, "{}: truncate is {}; it must be at least 1, or 0 for never", op, o.truncate);
  BARY_CHECK(o.lengths.empty() || static_cast<int64_t>(o.lengths.size()) == B, "{}: {} lengths for {} sequences", op,
             o.lengths.size(), B);
  for (int64_t n : o.lengths)
    BARY_CHECK(n >= 0 && n <= T, "{}: a sequence of length {} among sequences of {} steps", op, n, T);
  return H;
}

namespace {

using kernel::Strided;

constexpr int64_t kMostSequences = 64;  // of a chunk: more would push its gates out of the second-level cache

// Sequences that walk through time together. The result of none depends on the others, so this may depend on threads:
// equal shares, but not fewer than the rows of a register tile.
int64_t chunk_of(int64_t B) {
  const int64_t workers = inside_parallel() ? 1 : threads();
  int64_t chunks = (B + kMostSequences - 1) / kMostSequences;
  chunks = std::min((chunks + workers - 1) / workers * workers, std::max<int64_t>(1, B / 6));
  return (B + chunks - 1) / std::max<int64_t>(chunks, 1);
}

// W_hh for products of a few rows, step after step: always packed
struct PackedWeight {
  PackedWeight(const Tensor& w, bool transposed) {
    if (w.is_parameter()) {
      data = w.owner()->packed(w, transposed);
      return;
    }
    const int64_t n = w.dim(0), k = w.dim(1);
    own = Buffer(transposed ? kernel::packed_size(n, k) : kernel::packed_size(k, n));
    (transposed ? kernel::pack_transposed : kernel::pack)(w.data(), n, k, w.stride(), own.data());
    data = own.data();
  }
  const float* data;
  Buffer own;
};

// Gradients on the way back through a chunk: of its last h, which later padding must not touch, and of the state
struct Carried {
  Tensor last, h, c;
};

// One call: its inputs, its results, and what the backward pass needs of it.
struct Recurrence {
  Cell cell;
  int64_t B, T, H, G;
  std::vector<int64_t> lengths;
  int64_t truncate;
  Tensor x;
  RecurrentWeights w;
  RecurrentState first, last;
  Tensor y, gates, kept;  // (B,T,H), (B,T,G H), (B,T,H)

  Strided<float> step_of(const Tensor& a, int64_t b, int64_t t) const {  // rows of sequences b ..
    return {a.row(b * T + t), T * a.stride()};
  }
  kernel::CellStep step(int64_t begin, int64_t end, int64_t t) const {
    return {cell, end - begin, H, t, lengths.empty() ? nullptr : lengths.data() + begin};
  }
  int64_t longest(int64_t begin, int64_t end) const {
    return lengths.empty() ? T : *std::max_element(lengths.begin() + begin, lengths.begin() + end);
  }
  bool over(int64_t b, int64_t t) const { return !lengths.empty() && lengths[static_cast<size_t>(b)] <= t; }

  void forward(bool keep);
  void forward_chunk(int64_t begin, int64_t end, const float* packed) const;
  void backward();
  void backward_chunk(int64_t begin, int64_t end, const float* packed, const Tensor& dhidden,
                      const RecurrentState& dfirst) const;
  Strided<const float> state_before(int64_t begin, int64_t t, const Tensor& zeros) const;
  void settle(int64_t begin, int64_t t, bool stop, const Carried& d) const;
  void copy_states_before(int64_t row, int64_t count, const Tensor& to) const;
  void weight_gradients(const Tensor& du) const;
};

void fill_state(const Tensor& to, const Tensor& from) {
  for (int64_t r = 0; r < to.rows(); ++r) {
    if (from.defined()) {
      std::copy_n(from.row(r), to.channels(), to.row(r));
    } else {
      std::fill_n(to.row(r), to.channels(), 0.0f);
    }
  }
}

void Recurrence::forward(bool keep) {
  y = Tensor(Shape{B, T, H});
  gates = Tensor(Shape{B, T, G * H});
  if (keep && cell != Cell::rnn) kept = Tensor(y.shape());
  last.h = Tensor(Shape{B, H});
  fill_state(last.h, first.h);
  if (cell == Cell::lstm) {
    last.c = Tensor(Shape{B, H});
    fill_state(last.c, first.c);
  }
  kernel::Epilogue e;
  if (w.bias_ih.defined()) e.bias = w.bias_ih.data();
  Weight(w.weight_ih).forward(x, gates, e);
  const PackedWeight packed(w.weight_hh, true);
  parallel_for(B, chunk_of(B), [&](int64_t begin, int64_t end) { forward_chunk(begin, end, packed.data); });
}

// last.h and last.c are the state on the way.
void Recurrence::forward_chunk(int64_t begin, int64_t end, const float* packed) const {
  const int64_t rows = end - begin, most = longest(begin, end);
  Tensor hidden(Shape{rows, G * H});
  kernel::Epilogue e;
  if (w.bias_hh.defined()) e.bias = w.bias_hh.data();
  kernel::CellForward f;
  f.hidden = {hidden.data(), hidden.stride()};
  f.h = {last.h.row(begin), last.h.stride()};
  if (last.c.defined()) f.c = {last.c.row(begin), last.c.stride()};
  for (int64_t t = 0; t < T; ++t) {
    if (t < most) kernel::gemm(rows, G * H, H, f.h.data, f.h.ld, packed, hidden.data(), hidden.stride(), e);
    f.gates = step_of(gates, begin, t);
    f.next = t + 1 < T ? gates.stride() : 0;
    f.y = step_of(y, begin, t);
    if (kept.defined()) f.kept = step_of(kept, begin, t);
    kernel::cell_forward(step(begin, end, t), f);
  }
}

// Rows begin .. of a tensor's gradient, zeros if it has none
Tensor gradient_rows(const Tensor& of, int64_t begin, int64_t rows) {
  Tensor g = Tensor::zeros({rows, of.channels()});
  for (int64_t r = 0; of.has_grad() && r < rows; ++r)
    std::copy_n(of.cotangent() + (begin + r) * of.stride(), of.channels(), g.row(r));
  return g;
}

// What step t of sequences begin .. started from: c of an LSTM, else h
Strided<const float> Recurrence::state_before(int64_t begin, int64_t t, const Tensor& zeros) const {
  const Tensor &later = cell == Cell::lstm ? kept : y, &start = cell == Cell::lstm ? first.c : first.h;
  if (t > 0) return {later.row(begin * T + t - 1), T * later.stride()};
  if (start.defined()) return {start.row(begin), start.stride()};
  return {zeros.data(), 0};
}

// After step t on the way back: a sequence whose last step that counts is further back has waited; where gradients stop
// the others begin anew.
void Recurrence::settle(int64_t begin, int64_t t, bool stop, const Carried& d) const {
  for (int64_t r = 0; r < d.h.rows(); ++r) {
    if (over(begin + r, t)) {
      std::copy_n(d.last.row(r), H, d.h.row(r));
    } else if (stop) {
      std::fill_n(d.h.row(r), H, 0.0f);
      if (d.c.defined()) std::fill_n(d.c.row(r), H, 0.0f);
    }
  }
}

// Leaves the gradient of a in gates, that of u in dhidden (where it differs: a GRU), and those of the first state in
// dfirst where it is defined.
void Recurrence::backward_chunk(int64_t begin, int64_t end, const float* packed, const Tensor& dhidden,
                                const RecurrentState& dfirst) const {
  const int64_t rows = end - begin, most = longest(begin, end);
  const Carried d{gradient_rows(last.h, begin, rows), gradient_rows(last.h, begin, rows),
                  cell == Cell::lstm ? gradient_rows(last.c, begin, rows) : Tensor()};
  const Tensor u(Shape{rows, G * H}), direct(d.h.shape()), zeros = Tensor::zeros({1, H});
  kernel::Epilogue e;
  kernel::CellBackward b;
  b.hidden = {u.data(), u.stride()};
  b.dh = {d.h.data(), d.h.stride()};
  if (cell == Cell::lstm) b.dc = {d.c.data(), d.c.stride()};
  if (cell == Cell::gru) {
    b.direct = {direct.data(), direct.stride()};
    e.onto = direct.data(), e.onto_ld = direct.stride();
  }
  for (int64_t t = T - 1; t >= 0; --t) {
    b.gates = step_of(gates, begin, t);
    b.next = t > 0 ? -gates.stride() : 0;
    if (kept.defined()) b.kept = {kept.row(begin * T + t), T * kept.stride()};
    b.before = state_before(begin, t, zeros);
    if (y.has_grad()) b.dy = {y.cotangent() + (begin * T + t) * y.stride(), T * y.stride()};
    kernel::cell_backward(step(begin, end, t), b);
    for (int64_t r = 0; dhidden.defined() && r < rows; ++r)
      std::copy_n(u.row(r), G * H, dhidden.row((begin + r) * T + t));
    if (t >= most || (t == 0 && !dfirst.h.defined())) continue;
    const bool stop = t > 0 && truncate > 0 && t % truncate == 0;
    if (!stop) kernel::gemm(rows, H, G * H, u.data(), u.stride(), packed, d.h.data(), d.h.stride(), e);
    settle(begin, t, stop, d);
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (dfirst.h.defined()) std::copy_n(d.h.row(r), H, dfirst.h.row(begin + r));
    if (dfirst.c.defined()) std::copy_n(d.c.row(r), H, dfirst.c.row(begin + r));
  }
}

// The state h that steps row, row + 1, ... started from
void Recurrence::copy_states_before(int64_t row, int64_t count, const Tensor& to) const {
  for (int64_t r = row; r < row + count; ++r) {
    if (r % T > 0) {
      std::copy_n(y.row(r - 1), H, to.row(r - row));
    } else if (first.h.defined()) {
      std::copy_n(first.h.row(r / T), H, to.row(r - row));
    } else {
      std::fill_n(to.row(r - row), H, 0.0f);
    }
  }
}

// Some rows at a time (whole groups of the tape), for which all of W is gone through while they are in the second-level
// cache: it is the rows that are many here, not the columns.
void Recurrence::weight_gradients(const Tensor& du) const {
  constexpr int64_t kFloats = 98304;
  const int64_t rows = B * T, group = Tape::active()->group_of(rows), widest = std::max(x.stride(), y.stride());
  const int64_t whole = Tape::active()->grouped() ? group : 1;
  const int64_t piece = std::min(rows, std::max<int64_t>(1, kFloats / (widest * whole)) * whole);
  const bool hidden_too = w.weight_hh.needs_grad() || w.bias_hh.needs_grad();
  const Tensor before = hidden_too ? Tensor(Shape{piece, H}) : Tensor();
  for (int64_t r = 0; r < rows; r += piece) {
    const int64_t count = std::min(piece, rows - r);
    Weight(w.weight_ih)
        .backward_weight_rows({gates.row(r), x.row(r), gates.stride(), x.stride(), count, group}, w.bias_ih);
    if (!hidden_too) continue;
    copy_states_before(r, count, before);
    Weight(w.weight_hh)
        .backward_weight_rows({du.row(r), before.data(), du.stride(), before.stride(), count, group}, w.bias_hh);
  }
}

void give(const Tensor& to, const Tensor& gradient) {
  auto slot = to.grad().cleared(to.defined() ? to.rows() : 0);
  if (slot) kernel::add_rows(to.rows(), to.channels(), gradient.data(), gradient.stride(), slot.data, slot.stride);
}

void Recurrence::backward() {
  RecurrentState dfirst;
  if (first.h.needs_grad() || first.c.needs_grad()) dfirst.h = Tensor(Shape{B, H});
  if (first.c.needs_grad()) dfirst.c = Tensor(Shape{B, H});
  const Tensor dhidden = cell == Cell::gru ? Tensor(gates.shape()) : Tensor();
  const PackedWeight packed(w.weight_hh, false);
  parallel_for(B, chunk_of(B),
               [&](int64_t begin, int64_t end) { backward_chunk(begin, end, packed.data, dhidden, dfirst); });
  FlushDenormals flush;
  if (first.h.needs_grad()) give(first.h, dfirst.h);
  if (first.c.needs_grad()) give(first.c, dfirst.c);
  weight_gradients(dhidden.defined() ? dhidden : gates);
  if (auto g = x.grad()) Weight(w.weight_ih).backward_input(gates.data(), gates.stride(), x.rows(), g);
}

}  // namespace

RecurrentOutput recurrent(const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                          const RecurrentOptions& o) {
  const int64_t H = check_recurrent("recurrent", x, w, first, o);
  Tape* tape = Tape::active();
  bool recording = false;
  for (const Tensor& t : {x, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, first.h, first.c})
    recording = recording || (tape && t.needs_grad());
  auto r = std::make_shared<Recurrence>();
  r->cell = o.cell, r->B = x.dim(0), r->T = x.dim(1), r->H = H, r->G = kernel::gates_of(o.cell);
  r->lengths.assign(o.lengths.begin(), o.lengths.end());
  r->truncate = o.truncate;
  r->x = x, r->w = w, r->first = first;
  r->forward(recording);
  if (recording) {  // not record(): there are three results
    r->y.require_grad();
    r->last.h.require_grad();
    if (r->last.c.defined()) r->last.c.require_grad();
    tape->append([r] {
      if (r->y.has_grad() || r->last.h.has_grad() || r->last.c.has_grad()) r->backward();
    });
  }
  return {r->y, r->last};
}

}  // namespace bary
