// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: Elman's network, LSTM and GRU with PyTorch's formulas (kernel/recurrent.h), weights and order of
// gates. The input's product is made for all steps at once; then each step is one product with the state and the gates.
#pragma once
#include <cstdint>
#include <span>

#include "bary/kernel/recurrent.h"
#include "bary/tensor/tensor.h"

namespace bary {

using kernel::Cell;

// G parts of H rows: tanh of an rnn; i f g o of an lstm; r z n of a gru. Biases may be undefined.
struct RecurrentWeights {
  Tensor weight_ih, weight_hh;  // (G H,C), (G H,H)
  Tensor bias_ih, bias_hh;      // (G H)
};

struct RecurrentState {
  Tensor h, c;  // (B,H); c of an LSTM only. Undefined: zeros
};

struct RecurrentOptions {
  Cell cell = Cell::lstm;
  std::span<const int64_t> lengths = {};  // steps of each sequence that count, 0 to T; empty: all of all
  // Gradients stay within pieces of so many steps: the state that step truncate, 2 truncate, ... starts from is a
  // constant, as if each piece were a call of its own. 0: they go all the way.
  int64_t truncate = 0;
};

struct RecurrentOutput {
  Tensor y;             // (B,T,H): h of every step, 0 past a sequence's length
  RecurrentState last;  // after each sequence's last step that counts
};

// (B,T,C) -> (B,T,H). Sequences may come in pieces, each from the last state of the one before: the same bits.
// Gradients go to x, the weights and the first state, from y and from the last state.
RecurrentOutput recurrent(const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                          const RecurrentOptions& o);

// The same step by step from plain operations, to be read beside it and to check it.
RecurrentOutput recurrent_by_definition(const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                                        const RecurrentOptions& o);

// The hidden units H; an Error names what does not fit together.
int64_t check_recurrent(const char* op, const Tensor& x, const RecurrentWeights& w, const RecurrentState& first,
                        const RecurrentOptions& o);

}  // namespace bary
