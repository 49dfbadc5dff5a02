// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/recurrent.h"

#include <algorithm>

#include "bary/kernel/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bary/kernel/recurrent.cc"
#include "hwy/foreach_target.h"
// foreach_target must come before this
#include "bary/kernel/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bary::kernel {
namespace HWY_NAMESPACE {

// One row's arrays at unit j, with so many units left
struct Units {
  int64_t n, j;
  HWY_INLINE V16 load(const float* row, int64_t gate = 0) const { return load_n(row + gate * n + j, n - j); }
  // To the second-level cache, where it waits while a product fills the first
  HWY_INLINE void ask(const float* row, int64_t next, int64_t gates) const {
    if (next == 0) return;
    for (int64_t gate = 0; gate < gates; ++gate) __builtin_prefetch(row + next + gate * n + j, 1, 2);
  }
  HWY_INLINE void store(V16 x, float* row, int64_t gate = 0) const { store_n(x, row + gate * n + j, n - j); }
};

HWY_INLINE void forward_rnn(Units at, const CellForward& f, int64_t r) {
  float* gates = f.gates.row(r);
  at.ask(gates, f.next, 1);
  V16 h = tanh(at.load(gates) + at.load(f.hidden.row(r)));
  at.store(h, gates);
  at.store(h, f.h.row(r));
  at.store(h, f.y.row(r));
}

HWY_INLINE void forward_lstm(Units at, const CellForward& s, int64_t r) {
  float *gates = s.gates.row(r), *state = s.c.row(r);
  const float* u = s.hidden.row(r);
  at.ask(gates, s.next, 4);
  V16 i = sigmoid(at.load(gates, 0) + at.load(u, 0));
  V16 f = sigmoid(at.load(gates, 1) + at.load(u, 1));
  V16 g = tanh(at.load(gates, 2) + at.load(u, 2));
  V16 o = sigmoid(at.load(gates, 3) + at.load(u, 3));
  V16 c = fma(f, at.load(state), i * g), h = o * tanh(c);
  at.store(i, gates, 0);
  at.store(f, gates, 1);
  at.store(g, gates, 2);
  at.store(o, gates, 3);
  at.store(c, state);
  if (s.kept) at.store(c, s.kept.row(r));
  at.store(h, s.h.row(r));
  at.store(h, s.y.row(r));
}

HWY_INLINE void forward_gru(Units at, const CellForward& f, int64_t row) {
  float *gates = f.gates.row(row), *state = f.h.row(row);
  const float* u = f.hidden.row(row);
  at.ask(gates, f.next, 3);
  V16 r = sigmoid(at.load(gates, 0) + at.load(u, 0));
  V16 z = sigmoid(at.load(gates, 1) + at.load(u, 1));
  V16 un = at.load(u, 2), n = tanh(fma(r, un, at.load(gates, 2)));
  V16 h = fma(z, at.load(state) - n, n);
  at.store(r, gates, 0);
  at.store(z, gates, 1);
  at.store(n, gates, 2);
  if (f.kept) at.store(un, f.kept.row(row));
  at.store(h, state);
  at.store(h, f.y.row(row));
}

HWY_INLINE V16 upstream(Units at, const CellBackward& b, int64_t r) {
  V16 dh = at.load(b.dh.row(r));
  return b.dy ? dh + at.load(b.dy.row(r)) : dh;
}

HWY_INLINE void backward_rnn(Units at, const CellBackward& b, int64_t r) {
  at.ask(b.gates.row(r), b.next, 1);
  V16 da = upstream(at, b, r) * tanh_slope(at.load(b.gates.row(r)));
  at.store(da, b.gates.row(r));
  at.store(da, b.hidden.row(r));
}

HWY_INLINE void backward_lstm(Units at, const CellBackward& b, int64_t r) {
  float *gates = b.gates.row(r), *u = b.hidden.row(r), *dstate = b.dc.row(r);
  at.ask(gates, b.next, 4);
  V16 i = at.load(gates, 0), f = at.load(gates, 1), g = at.load(gates, 2), o = at.load(gates, 3);
  V16 dh = upstream(at, b, r), out = tanh(at.load(b.kept.row(r)));
  V16 dc = fma(dh * o, tanh_slope(out), at.load(dstate));
  V16 d[4] = {dc * g * sigmoid_slope(i), dc * at.load(b.before.row(r)) * sigmoid_slope(f), dc * i * tanh_slope(g),
              dh * out * sigmoid_slope(o)};
  for (int64_t gate = 0; gate < 4; ++gate) {
    at.store(d[gate], gates, gate);
    at.store(d[gate], u, gate);
  }
  at.store(dc * f, dstate);
}

HWY_INLINE void backward_gru(Units at, const CellBackward& b, int64_t row) {
  float *gates = b.gates.row(row), *u = b.hidden.row(row);
  at.ask(gates, b.next, 3);
  V16 r = at.load(gates, 0), z = at.load(gates, 1), n = at.load(gates, 2);
  V16 dh = upstream(at, b, row);
  V16 dn = dh * (set1(1.0f) - z) * tanh_slope(n);
  V16 dr = dn * at.load(b.kept.row(row)) * sigmoid_slope(r);
  V16 dz = dh * (at.load(b.before.row(row)) - n) * sigmoid_slope(z);
  at.store(dr, gates, 0);
  at.store(dz, gates, 1);
  at.store(dn, gates, 2);
  at.store(dr, u, 0);
  at.store(dz, u, 1);
  at.store(dn * r, u, 2);
  at.store(dh * z, b.direct.row(row));
}

HWY_INLINE bool over(const CellStep& s, int64_t r) { return s.lengths && s.lengths[r] <= s.t; }

void Forward(const CellStep& s, const CellForward& f) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (over(s, r)) {
      std::fill_n(f.y.row(r), s.n, 0.0f);
      continue;
    }
    for (int64_t j = 0; j < s.n; j += 16) {
      const Units at{s.n, j};
      if (s.cell == Cell::rnn) forward_rnn(at, f, r);
      if (s.cell == Cell::lstm) forward_lstm(at, f, r);
      if (s.cell == Cell::gru) forward_gru(at, f, r);
    }
  }
}

void Backward(const CellStep& s, const CellBackward& b) {
  for (int64_t r = 0; r < s.rows; ++r) {
    if (over(s, r)) {
      std::fill_n(b.gates.row(r), gates_of(s.cell) * s.n, 0.0f);
      std::fill_n(b.hidden.row(r), gates_of(s.cell) * s.n, 0.0f);
      if (b.direct) std::fill_n(b.direct.row(r), s.n, 0.0f);
      continue;
    }
    for (int64_t j = 0; j < s.n; j += 16) {
      const Units at{s.n, j};
      if (s.cell == Cell::rnn) backward_rnn(at, b, r);
      if (s.cell == Cell::lstm) backward_lstm(at, b, r);
      if (s.cell == Cell::gru) backward_gru(at, b, r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace bary::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bary::kernel {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

void cell_forward(const CellStep& step, const CellForward& f) { HWY_DYNAMIC_DISPATCH(Forward)(step, f); }
void cell_backward(const CellStep& step, const CellBackward& b) { HWY_DYNAMIC_DISPATCH(Backward)(step, b); }

}  // namespace bary::kernel
#endif
