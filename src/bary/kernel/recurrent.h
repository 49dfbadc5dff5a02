// SPDX-License-Identifier: Apache-2.0
// The gates of recurrent cells, one time step of a batch at a time: everything between the two matrix products.
// PyTorch's formulas and order of gates; a = x W_ih^T + b_ih and u = h W_hh^T + b_hh come from outside, cut into G
// parts of n.
#pragma once
#include <cstdint>

#include "bary/kernel/strided.h"

namespace bary::kernel {

enum class Cell {
  rnn,   // h' = tanh(a + u)                                                                       (Elman 1990)
  lstm,  // i f g o = s(a+u) s(a+u) tanh(a+u) s(a+u), c' = f c + i g, h' = o tanh(c')
         // (Hochreiter and Schmidhuber 1997; the gate f: Gers, Schmidhuber and Cummins 2000)
  gru,   // r z = s(a+u) s(a+u), n = tanh(a + r u), h' = (1 - z) n + z h                           (Cho et al. 2014)
};
constexpr int64_t gates_of(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::lstm ? 4 : 3; }  // G

struct CellStep {
  Cell cell = Cell::lstm;
  int64_t rows = 0, n = 0;           // sequences, hidden units
  int64_t t = 0;                     // this step
  const int64_t* lengths = nullptr;  // (rows) steps of each sequence; one with lengths <= t is over. null: none is
};

// Of a sequence that is over y becomes 0 and nothing else changes.
struct CellForward {
  Strided<float> gates;         // (rows, G n): a in, the gates out
  Strided<const float> hidden;  // (rows, G n): u
  Strided<float> h, c;          // (rows, n): the state, before in, after out; c of an LSTM
  Strided<float> y;             // (rows, n): the state h once more
  Strided<float> kept;          // (rows, n): what backward needs besides: c' of an LSTM, u of n of a GRU; may be absent
  int64_t next = 0;             // from a row of gates to that of the next step, which is asked for early; 0: none
};
void cell_forward(const CellStep& step, const CellForward& f);

// Of a sequence that is over both gradients become 0, and dc and dh stay.
struct CellBackward {
  Strided<float> gates;         // (rows, G n): the gates in, the gradient of a out
  Strided<float> hidden;        // (rows, G n): the gradient of u out
  Strided<const float> kept;    // (rows, n): as above
  Strided<const float> before;  // (rows, n): the state before, c of an LSTM and h of a GRU
  Strided<const float> dy;      // (rows, n): the gradient of y; absent: 0
  Strided<const float> dh;      // (rows, n): the gradient of h' that comes from later
  Strided<float> dc;            // (rows, n): the gradient of c' in, of c out (LSTM)
  Strided<float> direct;        // (rows, n): the part of the gradient of h that does not pass through u (GRU)
  int64_t next = 0;             // from a row of gates to that of the step before; 0: none
};
void cell_backward(const CellStep& step, const CellBackward& b);

}  // namespace bary::kernel
